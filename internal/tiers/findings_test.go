package tiers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// settled is a key whose payment went well.
func settled() View {
	return View{
		Record:    &Record{Status: "Completed", Fingerprint: "f", ResponseStatus: 201, BodyHash: "b"},
		Authority: &Authority{Status: "completed", Fingerprint: "f", ResponseStatus: 201, BodyHash: "b"},
		Payment:   &Payment{ID: "p", Status: "succeeded", Attempt: 1},
		Charges:   []Charge{{Key: "charge-p", Status: "succeeded", Attempts: 1}},
		Events:    []Event{{Type: "order.placed", Published: true}, {Type: "payment.succeeded", Published: true}},
	}
}

func TestFindings_AgreeOnASettledPayment(t *testing.T) {
	t.Parallel()
	all := settled().Findings()
	require.Len(t, all, 4)
	for _, f := range all {
		require.Equal(t, Agree, f.Verdict, f.Text)
	}
}

func TestFindings_MarkEachDifference(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*View)
		want   Verdict
		text   string
	}{
		"Redis was emptied":            {func(v *View) { v.Record = nil }, Pending, "Redis does not know the key"},
		"an attempt runs":              {func(v *View) { v.Record.Status = "InProgress" }, Pending, "an attempt runs"},
		"no row":                       {func(v *View) { v.Authority = nil }, Differ, "PostgreSQL does not have"},
		"another request":              {func(v *View) { v.Record.Fingerprint = "g" }, Differ, "different requests"},
		"another body":                 {func(v *View) { v.Record.BodyHash = "c" }, Differ, "different answers"},
		"another status":               {func(v *View) { v.Record.ResponseStatus = 402 }, Differ, "different answers"},
		"an answer without a row's":    {func(v *View) { v.Authority.ResponseStatus, v.Authority.Status = 0, "in_progress" }, Differ, "in_progress"},
		"a second charge":              {func(v *View) { v.Charges = append(v.Charges, v.Charges[0]) }, Differ, "took the money 2 ×"},
		"charged, not stored":          {func(v *View) { v.Payment.Status = "processing" }, Pending, "the outcome is not stored yet"},
		"declined, and charged":        {func(v *View) { v.Payment.Status = "declined" }, Differ, "payment is declined"},
		"paid without a charge":        {func(v *View) { v.Charges = nil }, Differ, "took the money 0 ×"},
		"no event":                     {func(v *View) { v.Events = v.Events[:1] }, Differ, "payment.succeeded 0 ×"},
		"two events":                   {func(v *View) { v.Events = append(v.Events, v.Events[1]) }, Differ, "payment.succeeded 2 ×"},
		"an event that is not sent on": {func(v *View) { v.Events[1].Published = false }, Pending, "not yet in the stream"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := settled()
			test.change(&view)
			var found []string
			for _, f := range view.Findings() {
				if f.Verdict == test.want {
					found = append(found, f.Text)
				}
			}
			require.Contains(t, fmt.Sprint(found), test.text)
		})
	}
}

func TestFindings_CompareNothingWithATierThatIsAway(t *testing.T) {
	t.Parallel()
	view := settled()
	view.Record, view.Charges = nil, nil
	view.Errors = map[string]string{"Redis": "no answer", "provider": "no answer"}
	require.Len(t, view.Findings(), 1, "the events alone")
}
