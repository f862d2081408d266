//go:build failpoints

package failpoint

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// The process. All but the last are points of a request.
const (
	afterAcquire   = "after-acquire"   // the key is held, nothing has begun
	beforeProvider = "before-provider" // a payment has begun and no money moved
	afterProvider  = "after-provider"  // money moved, and no store of ours knows
	beforeCommit   = "before-commit"   // of any transaction
	afterCommit    = "after-commit"    // the effect is there, the answer is not
	beforeComplete = "before-complete" // as above, and Redis does not know either
	afterPublish   = "after-publish"   // events are in the stream, and the relay's cursor is before them
)

// Names are those of all failpoints.
var Names = []string{afterAcquire, beforeProvider, afterProvider, beforeCommit, afterCommit, beforeComplete, afterPublish}

// process has the failpoints that are armed: a process dies as a whole.
var process = struct {
	sync.Mutex
	armed map[string]*point
}{armed: map[string]*point{}}

type point struct {
	skip  int
	pause time.Duration
}

// reach fires a failpoint that is armed.
func reach(name string) {
	process.Lock()
	p := process.armed[name]
	if p != nil && p.skip > 0 {
		p.skip--
		p = nil
	}
	if p != nil {
		delete(process.armed, name)
	}
	process.Unlock()
	switch {
	case p == nil:
	case p.pause > 0:
		time.Sleep(p.pause)
	default:
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {} // the signal may take a moment, in which nothing more must happen
	}
}

// Routes adds what arms and disarms them.
func Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /failpoints/{name}", func(w http.ResponseWriter, r *http.Request) {
		process.Lock()
		defer process.Unlock()
		if process.armed[r.PathValue("name")] == nil {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /failpoints", func(w http.ResponseWriter, _ *http.Request) {
		process.Lock()
		clear(process.armed)
		process.Unlock()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /failpoints/{name}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if !slices.Contains(Names, name) {
			http.NotFound(w, r)
			return
		}
		p, err := parse(r.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		process.Lock()
		process.armed[name] = p
		process.Unlock()
		w.WriteHeader(http.StatusNoContent)
	})
}

// parse is strict: a typo must not kill where a pause was meant.
func parse(query url.Values) (p *point, err error) {
	p = &point{}
	if text := query.Get("skip"); text != "" {
		if p.skip, err = strconv.Atoi(text); err != nil || p.skip < 0 {
			return nil, fmt.Errorf("skip must be a number, is %q", text)
		}
	}
	if text := query.Get("pause"); text != "" {
		if p.pause, err = time.ParseDuration(text); err != nil || p.pause <= 0 {
			return nil, fmt.Errorf("pause must be a duration such as 4s, is %q", text)
		}
	}
	return p, nil
}
