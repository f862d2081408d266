package fault

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

// mailKinds excuse nothing: a mail server in trouble delays mails and nothing else.
var mailKinds = []Kind{
	{Name: "mail server kill", Victim: Mail, draw: process("kill", stack.Mail, "start")},
	{Name: "mail server pause", Victim: Mail, draw: process("pause", stack.Mail, "resume")},
	{Name: "mail server slow", Victim: Mail, draw: (*Scheduler).slowMail},
	{Name: "mail server full", Victim: Mail, draw: (*Scheduler).fillMail},
	{Name: "mail answers cut in half", Victim: Mail, draw: (*Scheduler).cutMail},
}

func (s *Scheduler) slowMail() *Run {
	replica, delay := s.replica(), time.Duration(500+s.random.IntN(3000))*time.Millisecond
	return &Run{
		Label:  fmt.Sprintf("mail server answers %s after %s", replica, delay),
		inject: s.do("slow", replica, stack.Mail, delay.String()), heal: s.do("heal", replica, stack.Mail),
	}
}

// cutMail ends connections after a number of bytes that lies in the first three mails' answers.
func (s *Scheduler) cutMail() *Run {
	replica, bytes := s.replica(), 150+s.random.IntN(700)
	return &Run{
		Label:  "cut answers of the mail server to " + replica,
		inject: s.do("cut", replica, stack.Mail, fmt.Sprint(bytes)), heal: s.do("heal", replica, stack.Mail),
	}
}

func (s *Scheduler) fillMail() *Run {
	return &Run{
		Label: "mail server is full", victims: []string{stack.Mail},
		inject: func(ctx context.Context) error { return s.mailSink(ctx, http.MethodPut) },
		heal:   func(ctx context.Context) error { return s.mailSink(ctx, http.MethodDelete) },
	}
}

func (s *Scheduler) mailSink(ctx context.Context, method string) error {
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.target.Stack.Ops(stack.Mail)+"/v1/full", http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the mail server answers %s", answer.Status)
	}
	return nil
}
