package pspsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// eventDelay lets the answer arrive before the event, as with most providers.
	eventDelay = 2 * time.Second
	// webhookTimeout bounds one attempt: an endpoint should answer at once.
	webhookTimeout = 15 * time.Second
	// firstPause and lastPause bound the pauses between attempts, which double.
	firstPause = 500 * time.Millisecond
	lastPause  = 15 * time.Second
	// maxPosting bounds the attempts at a time, so that a backlog is no attack.
	maxPosting = 16
)

// event is what is sent. One outcome has one event, whose ID derives from it.
type event struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      entry     `json:"data"`
}

func eventID(e entry) string { return "evt_" + e.ID }

// courier delivers events: each is sent again until it is answered 2xx, also after a restart, so at
// least once. Safe for concurrent use.
type courier struct {
	*Server
	url    string
	signer *standardwebhooks.Webhook
	client *http.Client
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	begun    map[string]bool // keys
	underWay sync.WaitGroup
}

// SendEvents has the outcomes of charges and refunds sent to a URL as events, also those that were
// not delivered before the last stop. They are signed by the rules of Standard Webhooks with the
// secret, which is whsec_ and base64. It is for a server that does not serve yet.
func (s *Server) SendEvents(url, secret string) error {
	signer, err := standardwebhooks.NewWebhook(secret)
	if err == nil && strings.TrimPrefix(secret, "whsec_") == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return fmt.Errorf("webhook secret must be whsec_ and base64: %w", err)
	}
	transport := &http.Transport{MaxConnsPerHost: maxPosting, MaxIdleConnsPerHost: maxPosting}
	client := &http.Client{Transport: transport, Timeout: webhookTimeout}
	s.courier = &courier{Server: s, url: url, signer: signer, client: client, begun: map[string]bool{}}
	s.courier.ctx, s.courier.cancel = context.WithCancel(context.Background())
	for _, e := range s.ledger.list(func(*entry) bool { return true }) {
		s.courier.deliver(e)
	}
	return nil
}

// deliver sends an outcome's event in the background, unless it was delivered or is on its way.
func (c *courier) deliver(e entry) {
	if e.Status == statusPending || e.Delivered || tokens[e.Source].silent {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun[e.IdempotencyKey] || c.ctx.Err() != nil {
		return
	}
	c.begun[e.IdempotencyKey] = true
	c.underWay.Go(func() {
		if c.send(e) {
			if err := c.ledger.delivered(e.IdempotencyKey); err != nil { // it will come again
				c.log.Error("delivery not noted", "id", eventID(e), "cause", err)
			}
		}
	})
}

// send tries to deliver an event, and reports whether it needs no more deliveries.
func (c *courier) send(e entry) bool {
	if c.troubles.meets(eventsRepeated) { // and once more when it is due
		for _, one := range c.troubles.again(e) {
			_, _ = c.post(c.ctx, one)
		}
	}
	if wait.Pause(c.ctx, max(0, time.Until(e.CreatedAt.Add(tokens[e.Source].delay)))+c.eventDelay) != nil {
		return false
	}
	if c.troubles.meets(eventsLost) {
		return true
	}
	if c.troubles.outlast(c.ctx, eventsDelayed, bothHeld) != nil {
		return false
	}
	for attempt := 0; ; attempt++ {
		status, err := c.post(c.ctx, e)
		if status/100 == 2 {
			return true
		}
		c.log.Warn("event not delivered", "id", eventID(e), "attempt", attempt+1, "status", status, "cause", err)
		longest := min(c.firstPause<<min(attempt, 16), lastPause)
		if wait.Pause(c.ctx, longest/2+rand.N(longest/2)) != nil {
			return false
		}
	}
}

// post makes one attempt, and returns the status of the answer, or 0. The event is signed as of
// now: its ID is older than that, perhaps.
func (c *courier) post(ctx context.Context, e entry) (int, error) {
	now := time.Now().UTC()
	body, err := json.Marshal(event{Type: e.Object + "." + e.Status, Timestamp: now, Data: e})
	signature, signErr := c.signer.Sign(eventID(e), now, body)
	request, requestErr := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err := errors.Join(err, signErr, requestErr); err != nil {
		return 0, fmt.Errorf("make event %s: %w", eventID(e), err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(standardwebhooks.HeaderWebhookID, eventID(e))
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	response, err := c.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, maxBody)) // so that the connection can be used again
	return response.StatusCode, err
}

// close ends the deliveries that are under way; a next start goes on with them.
func (c *courier) close() {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.underWay.Wait()
	c.client.CloseIdleConnections()
}
