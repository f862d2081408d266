package idempotency

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// answer replies from the record that is there.
func (x *exchange) answer(existing *Record) {
	result, refusal := x.judge(existing)
	if refusal == nil && !accepts(x.r.Header, existing.Response.Header.Get("Content-Encoding")) {
		result, refusal = ResultNotKept, notAccepted(existing.Response)
	}
	if refusal == nil && x.replayHook != nil {
		kept := *existing
		existing = &kept
		if refusal = x.replayHook(x.w, x.r, existing); refusal != nil {
			result = ResultDenied
		}
	}
	if refusal == nil {
		x.replay(existing.Response)
		return
	}
	if result == ResultNotKept {
		if location := onlyLocation.pick(existing.Response.Header); x.fits(Response{Header: location}) {
			maps.Copy(x.w.Header(), location)
		}
	}
	x.reject(result, refusal)
}

// accepts reports whether a client can read an encoding (RFC 9110, section 12.5.3).
func accepts(h http.Header, encoding string) bool {
	accepted := h.Values("Accept-Encoding")
	if encoding == "" || strings.EqualFold(encoding, "identity") || len(accepted) == 0 {
		return true
	}
	others := false
	for item := range strings.SplitSeq(strings.Join(accepted, ","), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(item, " ", ""), ";")
		wanted := weight == "" || strings.Trim(weight, "qQ=0.") != ""
		switch {
		case strings.EqualFold(name, encoding):
			return wanted
		case name == "*":
			others = wanted
		}
	}
	return others
}

func (x *exchange) replay(kept Response) {
	x.observe(x.r, x.conclude(ResultReplay))
	outer, header := x.w.Header(), x.headers.pick(kept.Header)
	if _, encodes := outer["Content-Encoding"]; !encodes {
		declareLength(outer, kept.Body)
	}
	if varies, ok := header["Vary"]; ok { // what is outside has its own
		added := slices.DeleteFunc(varies, func(name string) bool { return slices.Contains(outer["Vary"], name) })
		header["Vary"] = append(slices.Clone(outer["Vary"]), added...)
	}
	maps.Copy(outer, header)
	outer.Set(x.dialect.replayName(), "true")
	x.w.WriteHeader(kept.StatusCode)
	if len(kept.Body) > 0 {
		_, _ = x.w.Write(kept.Body) // the client may be gone
	}
}
