package redisstore

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Ports of hosts without one.
const (
	redisPort    = "6379"
	sentinelPort = "26379"
)

// Options returns the options for a [Store] that a URL describes, to be changed before
// [NewClient] if necessary. The URL is one of
//
//	redis://[user:password@]host[:port][/database]
//	redis+sentinel://[user:password@]host[:port],…/master name[/database]
//	redis+cluster://[user:password@]host[:port],…
//
// or the same with rediss instead of redis, for TLS on all connections, including those to
// Sentinels. The hosts are the Sentinels, or some of the cluster's nodes; the client finds the
// others. User and password are those of the servers that keep the records. These options may
// follow as a query:
//
//   - sentinel_username, sentinel_password: for the Sentinels
//   - ca_file: PEM file of the authorities that signed the servers' certificates,
//     instead of the machine's
//   - cert_file, key_file: PEM files of our own certificate and its key, for servers that
//     authenticate clients by them (redis.conf, tls-auth-clients)
//   - those of redis.ParseURL, such as read_timeout=1s, pool_size=50 and
//     skip_verify=true; max_retries has no effect, because retries are off
//
// Errors do not repeat the URL, which may contain a password.
func Options(rawURL string) (*redis.UniversalOptions, error) {
	a, err := parseAddress(rawURL)
	if err != nil {
		return nil, fmt.Errorf("parse redis url: %w", err)
	}
	o, err := a.options()
	if err != nil {
		return nil, fmt.Errorf("parse redis url: %w", err)
	}
	return o, nil
}

// address is a parsed URL whose query is not interpreted yet.
type address struct {
	tls, sentinel, cluster bool
	username, password     string
	hosts                  []string // host:port
	master                 string   // its name at the Sentinels
	database               string   // digits, or empty
	query                  url.Values
}

// parseAddress parses the URL itself, because url.Parse refuses lists of hosts and repeats
// passwords in its errors.
func parseAddress(rawURL string) (a address, err error) {
	scheme, rest, _ := strings.Cut(rawURL, "://")
	if err := a.setScheme(scheme); err != nil {
		return a, err
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	user, hosts := "", authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, hosts = authority[:at], authority[at+1:]
	}
	if strings.ContainsAny(user+path+query, "@#") {
		return a, errors.New("percent-encode / ? # @ in user and password")
	}
	if a.query, err = url.ParseQuery(query); err != nil {
		return a, errors.New("the query is not name=value&name=value, percent-encoded")
	}
	return a, cmp.Or(a.setUser(user), a.setHosts(hosts), a.setPath(path))
}

func (a *address) setScheme(scheme string) error {
	transport, kind, _ := strings.Cut(scheme, "+")
	a.tls, a.sentinel, a.cluster = transport == "rediss", kind == "sentinel", kind == "cluster"
	if transport != "redis" && !a.tls || kind != "" && !a.sentinel && !a.cluster || strings.HasSuffix(scheme, "+") {
		return errors.New("it must begin with redis://, redis+sentinel:// or redis+cluster://, or the same with rediss for TLS")
	}
	return nil
}

func (a *address) setUser(user string) error {
	username, password, _ := strings.Cut(user, ":")
	var nameErr, passErr error
	a.username, nameErr = url.PathUnescape(username)
	a.password, passErr = url.PathUnescape(password)
	if nameErr != nil || passErr != nil {
		return errors.New("percent-encode % in user and password")
	}
	return nil
}

func (a *address) setHosts(list string) error {
	port := redisPort
	if a.sentinel {
		port = sentinelPort
	}
	for host := range strings.SplitSeq(list, ",") {
		u, err := url.Parse("//" + host)
		if err != nil || u.Hostname() == "" || u.Host != host {
			return errors.New("a host must be host:port, or [host]:port for IPv6")
		}
		port := cmp.Or(u.Port(), port)
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("a port must be a number from 1 to 65535")
		}
		a.hosts = append(a.hosts, net.JoinHostPort(u.Hostname(), port))
	}
	if len(a.hosts) > 1 && !a.sentinel && !a.cluster {
		return errors.New("several hosts need redis+sentinel:// or redis+cluster://")
	}
	return nil
}

func (a *address) setPath(path string) error {
	if a.sentinel {
		name, database, _ := strings.Cut(path, "/")
		master, err := url.PathUnescape(name)
		if err != nil || master == "" {
			return errors.New("after Sentinels the path must be /master name, percent-encoded, or /master name/database")
		}
		a.master, path = master, database
	}
	a.database = strings.TrimSuffix(path, "/")
	if _, err := strconv.ParseUint(cmp.Or(a.database, "0"), 10, 31); err != nil {
		return errors.New("the database must be a number")
	}
	return nil
}

// take removes an option from the query.
func (a *address) take(name string) string {
	value := a.query.Get(name)
	a.query.Del(name)
	return value
}

// options lets go-redis parse the rest of the query, and adds the other options.
func (a *address) options() (*redis.UniversalOptions, error) {
	sentinelUsername, sentinelPassword := "", ""
	if a.sentinel {
		sentinelUsername, sentinelPassword = a.take("sentinel_username"), a.take("sentinel_password")
	}
	encryption, err := a.tlsConfig()
	if err != nil {
		return nil, err
	}
	base := url.URL{Scheme: "redis", Host: a.hosts[0], Path: "/" + a.database, RawQuery: a.query.Encode()}
	if a.tls {
		base.Scheme = "rediss"
	}
	set, err := redis.ParseURL(base.String())
	if err != nil {
		return nil, err
	}
	if a.cluster && set.DB != 0 {
		return nil, errors.New("a cluster has no numbered databases")
	}
	if a.tls {
		encryption.InsecureSkipVerify = set.TLSConfig.InsecureSkipVerify
	}
	return &redis.UniversalOptions{
		Addrs: slices.Clone(a.hosts), IsClusterMode: a.cluster, DB: set.DB,
		Username: a.username, Password: a.password, TLSConfig: encryption,
		MasterName: a.master, SentinelUsername: sentinelUsername, SentinelPassword: sentinelPassword,

		DialTimeout:           cmp.Or(set.DialTimeout, DialTimeout),
		ReadTimeout:           cmp.Or(set.ReadTimeout, ReadTimeout),
		WriteTimeout:          cmp.Or(set.WriteTimeout, WriteTimeout),
		PoolTimeout:           cmp.Or(set.PoolTimeout, PoolTimeout),
		ContextTimeoutEnabled: true,
		MaxRetries:            -1, // 0 would mean three
		DialerRetries:         1,  // a server that is down should fail now, not after five dials

		PoolSize: set.PoolSize, PoolFIFO: set.PoolFIFO, MaxConcurrentDials: set.MaxConcurrentDials, PipelinePoolSize: set.PipelinePoolSize,
		MinIdleConns: set.MinIdleConns, MaxIdleConns: set.MaxIdleConns, MaxActiveConns: set.MaxActiveConns,
		ConnMaxIdleTime: set.ConnMaxIdleTime, ConnMaxLifetime: set.ConnMaxLifetime, ConnMaxLifetimeJitter: set.ConnMaxLifetimeJitter,
		Protocol: set.Protocol, ClientName: set.ClientName, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}, nil
}
