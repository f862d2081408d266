package app

import (
	"cmp"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/httpapi"
)

// timeoutSlack is what each timeout must have more than the one inside it, so that the inner one
// comes first and can say why.
const timeoutSlack = 2 * time.Second

// nginxTimeout is the proxy_read_timeout of some paths in nginx.conf.
type nginxTimeout struct {
	path *regexp.Regexp
	read time.Duration
}

// nginxTimeouts reads nginx.conf. The last one is that of all other paths.
func nginxTimeouts(t *testing.T) (list []nginxTimeout) {
	t.Helper()
	conf, err := os.ReadFile("../../deploy/nginx/nginx.conf")
	require.NoError(t, err)
	timeout := regexp.MustCompile(`(?:location ~ (\S+) \{[^}]*)?proxy_read_timeout (\w+);`)
	for _, found := range timeout.FindAllStringSubmatch(string(conf), -1) {
		read, err := time.ParseDuration(found[2])
		require.NoError(t, err)
		one := nginxTimeout{regexp.MustCompile(found[1]), read}
		if found[1] == "" {
			list = append(list, one)
		} else {
			list = append([]nginxTimeout{one}, list...)
		}
	}
	require.Len(t, list, 2)
	return list
}

// routesOf lists the API's routes as methods and patterns.
func routesOf(t *testing.T) (routes []string) {
	t.Helper()
	spec, err := api.GetSpec()
	require.NoError(t, err)
	for path, item := range spec.Paths.Map() {
		for method := range item.Operations() {
			routes = append(routes, method+" /v1"+path)
		}
	}
	require.Greater(t, len(routes), 15)
	return routes
}

// budgetOf is how long a route may take by agreement.
func budgetOf(cfg Config, route string) time.Duration {
	apiConfig := httpapi.Config{PaymentDeadline: cfg.PaymentDeadline, OrderDeadline: cfg.OrderDeadline}
	return cmp.Or(httpapi.Budgets(apiConfig)[route], cfg.OrderDeadline)
}

func TestNginx_WaitsLongerThanEachRoute(t *testing.T) {
	t.Parallel()
	cfg, err := ParseConfig(nil)
	require.NoError(t, err)
	timeouts := nginxTimeouts(t)
	for _, route := range routesOf(t) {
		_, pattern, _ := strings.Cut(route, " ")
		path := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(pattern, "x")
		longest := budgetOf(cfg, route)
		for _, location := range timeouts {
			if location.path.MatchString(path) {
				require.GreaterOrEqual(t, location.read, longest+timeoutSlack, "%s may take %s, nginx waits %s", route, longest, location.read)
				break
			}
		}
	}
}

func TestNginx_GivesUpBeforeTheReplicaCloses(t *testing.T) {
	t.Parallel()
	cfg, err := ParseConfig(nil)
	require.NoError(t, err)
	server := (&App{cfg: cfg, log: slog.New(slog.DiscardHandler)}).newAPIServer(nil)
	for _, location := range nginxTimeouts(t) {
		require.Greater(t, server.WriteTimeout, location.read)
	}
}
