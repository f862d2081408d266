package redisstore_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/redisstore"
)

// said is what a URL says, of what tells the forms apart.
type said struct {
	addrs              []string
	username, password string
	db                 int
	master             string
	sentinelUsername   string
	sentinelPassword   string
	cluster, tls       bool
}

func TestOptions_OfEachForm(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]said{
		"redis://cache":                       {addrs: []string{"cache:6379"}},
		"redis://cache:6380/3":                {addrs: []string{"cache:6380"}, db: 3},
		"redis://cache:6380/":                 {addrs: []string{"cache:6380"}},
		"redis://[::1]:6380/3?read_timeout=1": {addrs: []string{"[::1]:6380"}, db: 3},
		"redis://:secret@[::1]":               {addrs: []string{"[::1]:6379"}, password: "secret"},
		"rediss://shop:p%40ss%2F%25@cache:6380/3": {
			addrs: []string{"cache:6380"}, username: "shop", password: "p@ss/%", db: 3, tls: true,
		},
		"redis+sentinel://a,b:5,[::1]:6/oncepay":     {addrs: []string{"a:26379", "b:5", "[::1]:6"}, master: "oncepay"},
		"redis+sentinel://a:1/once%20pay":            {addrs: []string{"a:1"}, master: "once pay"},
		"redis+sentinel://a:1/oncepay/2?pool_size=5": {addrs: []string{"a:1"}, master: "oncepay", db: 2},
		"rediss+sentinel://shop:secret@a:1,b:2/oncepay/2?sentinel_username=watch&sentinel_password=o%40": {
			addrs: []string{"a:1", "b:2"}, username: "shop", password: "secret", db: 2, master: "oncepay",
			sentinelUsername: "watch", sentinelPassword: "o@", tls: true,
		},
		"redis+cluster://a,b:5":                 {addrs: []string{"a:6379", "b:5"}, cluster: true},
		"redis+cluster://a":                     {addrs: []string{"a:6379"}, cluster: true},
		"rediss+cluster://shop:secret@a:1,b:2/": {addrs: []string{"a:1", "b:2"}, username: "shop", password: "secret", cluster: true, tls: true},
	} {
		o, err := redisstore.Options(url)
		require.NoError(t, err, url)
		require.Equal(t, want, said{
			addrs: o.Addrs, username: o.Username, password: o.Password, db: o.DB, master: o.MasterName,
			sentinelUsername: o.SentinelUsername, sentinelPassword: o.SentinelPassword,
			cluster: o.IsClusterMode, tls: o.TLSConfig != nil,
		}, url)
		require.Equal(t, -1, o.MaxRetries, url)
		require.True(t, o.ContextTimeoutEnabled, url)
	}
}

func TestOptions_FromTheQuery(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"rediss://a?", "rediss+sentinel://a,b/m?", "rediss+cluster://a,b?"} {
		o, err := redisstore.Options(form + "read_timeout=1s&pool_size=7&max_retries=5&skip_verify=true")
		require.NoError(t, err)
		require.Equal(t, time.Second, o.ReadTimeout, "what the URL asks for")
		require.Equal(t, redisstore.WriteTimeout, o.WriteTimeout)
		require.Equal(t, redisstore.DialTimeout, o.DialTimeout)
		require.Equal(t, redisstore.PoolTimeout, o.PoolTimeout)
		require.Equal(t, 7, o.PoolSize)
		require.Equal(t, -1, o.MaxRetries, "whatever the URL asks for")
		require.True(t, o.TLSConfig.InsecureSkipVerify)
		require.Empty(t, o.TLSConfig.ServerName, "it is the name of whatever host is dialed")
	}
}

func TestOptions_RefusesBadURLs(t *testing.T) {
	t.Parallel()
	notPEM := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(notPEM, []byte("nonsense"), 0o600))
	for url, want := range map[string]string{
		"":                                                   "must begin with redis://",
		"shop:hunter2@cache:6379":                            "must begin with redis://",
		"http://shop:hunter2@cache":                          "must begin with redis://",
		"redis+ring://shop:hunter2@cache":                    "must begin with redis://",
		"redis+://shop:hunter2@cache":                        "must begin with redis://",
		"redis://":                                           "host:port",
		"redis://shop:hunter2":                               "host:port",
		"redis://:hunter2@":                                  "host:port",
		"redis://:hunter2@cache:65536":                       "from 1 to 65535",
		"redis://:hunter2@a:1,b:2":                           "several hosts need",
		"redis://:hunter2@a/x":                               "database must be a number",
		"redis://:hunter2@a/-1":                              "database must be a number",
		"redis://:hunter2@a/1/2":                             "database must be a number",
		"redis://:hunter2%@a":                                "percent-encode %",
		"redis://:hun/ter2@a":                                "percent-encode /",
		"redis://:hun?ter2@a":                                "percent-encode /",
		"redis://:hun#ter2@a":                                "percent-encode /",
		"redis://:hun@ter2@a":                                "percent-encode /",
		"redis://:hunter2@a?read_timeout=soon":               "read_timeout",
		"redis://:hunter2@a?sentinel_password=hunter2":       "unexpected option: sentinel_password",
		"redis://:hunter2@a?nonsense=1":                      "unexpected option: nonsense",
		"redis://:hunter2@a?ca_file=x":                       "ca_file, cert_file and key_file need rediss://",
		"redis://:hunter2@a?key_file=x":                      "ca_file, cert_file and key_file need rediss://",
		"rediss://:hunter2@a?cert_file=/none&key_file=/none": "cert_file and key_file: open /none",
		"redis://a?x=%zz":                                    "percent-encoded",
		"rediss://:hunter2@a?ca_file=" + notPEM:              "holds no PEM certificate",
		"rediss://:hunter2@a?ca_file=/none":                  "ca_file: open /none",
		"redis+sentinel://:hunter2@a:1":                      "/master name",
		"redis+sentinel://:hunter2@a:1/":                     "/master name",
		"redis+sentinel://:hunter2@a:1,,b:2/m":               "host:port",
		"redis+sentinel://:hunter2@a:1/m/x":                  "database must be a number",
		"redis+sentinel://a:1/m?sentinel_password=%zhunter2": "percent-encoded",
		"redis+cluster://:hunter2@a:1,b:2/3":                 "no numbered databases",
		"redis+cluster://:hunter2@a:1,b:2?db=3":              "no numbered databases",
		"redis+cluster://:hunter2@a:1,b:x":                   "host:port",
	} {
		_, err := redisstore.Open(url)
		require.ErrorContains(t, err, want, url)
		require.ErrorContains(t, err, "parse redis url", url)
		require.NotContains(t, err.Error(), "hunter2", "passwords stay out of messages")
		require.NotContains(t, err.Error(), "ter2", "nor do parts of them")
	}
}

func TestNew_NeedsAClient(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { redisstore.New(nil) })
}
