package idempotency

import (
	"maps"
)

// answer replies from the record that is there.
func (x *exchange) answer(existing *Record) {
	result, refusal := x.judge(existing)
	if refusal == nil && x.replayHook != nil {
		if refusal = x.replayHook(x.w, x.r, *existing); refusal != nil {
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

func (x *exchange) replay(kept Response) {
	x.observe(x.r, x.conclude(ResultReplay))
	maps.Copy(x.w.Header(), x.headers.pick(kept.Header))
	x.w.Header().Set(x.dialect.replayName(), "true")
	declareLength(x.w.Header(), kept.Body)
	x.w.WriteHeader(kept.StatusCode)
	if len(kept.Body) > 0 {
		_, _ = x.w.Write(kept.Body) // the client may be gone
	}
}
