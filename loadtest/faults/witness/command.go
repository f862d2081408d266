package witness

import (
	"strconv"
	"strings"
	"time"
)

// command is a line of MONITOR (https://redis.io/docs/latest/commands/monitor/): what Redis did,
// and when, by its own clock.
type command struct {
	at     time.Duration // since 1970
	script bool          // a script gave it
	args   []string      // the name first, in lower case
}

// parse reads a line such as
//
//	+1339518083.107412 [0 127.0.0.1:60866] "set" "key" "value"
//
// and returns false for others.
func parse(line string) (command, bool) {
	stamp, rest, found := strings.Cut(strings.TrimPrefix(line, "+"), " [")
	source, rest, closed := strings.Cut(rest, "] ")
	at, err := time.ParseDuration(stamp + "s")
	if !found || !closed || err != nil {
		return command{}, false
	}
	c := command{at: at, script: strings.HasSuffix(source, " lua")}
	for rest != "" {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return command{}, false
		}
		arg, err := strconv.Unquote(quoted)
		if err != nil {
			return command{}, false
		}
		c.args = append(c.args, arg)
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	if len(c.args) == 0 {
		return command{}, false
	}
	c.args[0] = strings.ToLower(c.args[0])
	return c, true
}

// option returns the argument after the one with this name.
func (c command) option(name string) (string, bool) {
	for i, arg := range c.args {
		if strings.EqualFold(arg, name) {
			if i+1 < len(c.args) {
				return c.args[i+1], true
			}
			return "", true
		}
	}
	return "", false
}

// lifetime is the PX or EX of a SET; a record without either does not expire.
func (c command) lifetime() time.Duration {
	for name, unit := range map[string]time.Duration{"px": time.Millisecond, "ex": time.Second} {
		text, _ := c.option(name)
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return time.Duration(n) * unit
		}
	}
	return forever
}
