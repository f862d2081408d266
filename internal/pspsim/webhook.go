package pspsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	// DefaultWebhookDelay lets the answer arrive before the event, as with most providers.
	DefaultWebhookDelay = 2 * time.Second
	// webhookTimeout bounds one attempt: an endpoint should answer at once.
	webhookTimeout = 15 * time.Second
	// firstPause and lastPause bound the pauses between attempts, which double.
	firstPause = 500 * time.Millisecond
	lastPause  = 15 * time.Second
	// maxDeliveries is how often an event is tried: for some ten minutes. A start of the simulator
	// begins anew.
	maxDeliveries = 45
	// maxPosting bounds the attempts at a time, so that a backlog is no attack.
	maxPosting = 16
)

// Webhooks say where the provider sends an event for each outcome of a charge or refund, signed by
// the rules of Standard Webhooks. It is sent again until it is answered 2xx, also after a restart:
// at least once.
type Webhooks struct {
	URL    string
	Secret string        // whsec_ and base64
	Delay  time.Duration // from the time of the answer to the event
}

// event is what is sent. One outcome has one event, whose ID derives from it.
type event struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      entry     `json:"data"`
}

func eventID(e entry) string { return "evt_" + e.ID }

// courier delivers events. Safe for concurrent use.
type courier struct {
	Webhooks
	signer *standardwebhooks.Webhook
	client *http.Client
	log    *slog.Logger
	sent   *deliveries
	slots  chan struct{}
	first  time.Duration // the first pause
	ctx    context.Context
	cancel context.CancelFunc

	troubles *troubles
}

// newCourier fails when the secret is no secret, or the file of what was delivered, at path, can't
// be kept.
func newCourier(to Webhooks, path string, log *slog.Logger, troubles *troubles) (*courier, error) {
	signer, err := standardwebhooks.NewWebhook(to.Secret)
	if err == nil && strings.TrimPrefix(to.Secret, "whsec_") == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("webhook secret must be whsec_ and base64: %w", err)
	}
	sent, err := openDeliveries(path)
	if err != nil {
		return nil, fmt.Errorf("open the file of delivered events: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &courier{Webhooks: to, signer: signer, log: log, sent: sent, first: firstPause,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxPosting}, Timeout: webhookTimeout},
		slots:  make(chan struct{}, maxPosting), ctx: ctx, cancel: cancel, troubles: troubles}, nil
}

// deliver sends an outcome's event in the background, unless it was delivered or is on its way.
func (c *courier) deliver(e entry) {
	token, _ := parseToken(e.Source) // a refund has none, and behaves
	if e.Status == statusPending || token.silent {
		return
	}
	c.sent.begin(eventID(e), func() {
		ctx := c.ctx
		if c.troubles.webhooks(WebhooksRepeated) { // and once more when it is due
			for _, one := range c.troubles.again(e) {
				_, _ = c.post(ctx, one)
			}
		}
		if !pause(ctx, max(0, time.Until(e.CreatedAt.Add(token.delay)))+c.Delay) {
			return
		}
		if c.troubles.webhooks(WebhooksLost) {
			c.delivered(e)
			return
		}
		select {
		case <-c.troubles.delay():
		case <-ctx.Done():
			return
		}
		for attempt := range maxDeliveries {
			status, err := c.post(ctx, e)
			if status/100 == 2 {
				c.delivered(e)
				return
			}
			c.log.Warn("event not delivered", "id", eventID(e), "attempt", attempt+1, "status", status, "cause", err)
			longest := min(c.first<<min(attempt, 16), lastPause)
			if !pause(ctx, longest/2+rand.N(longest/2)) {
				return
			}
		}
		c.log.Error("event given up", "id", eventID(e))
	})
}

func (c *courier) delivered(e entry) {
	if err := c.sent.done(eventID(e)); err != nil { // it will come again
		c.log.Error("delivery not noted", "id", eventID(e), "cause", err)
	}
}

// post makes one attempt, and returns the status of the answer, or 0.
func (c *courier) post(ctx context.Context, e entry) (int, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	request, err := c.request(ctx, e)
	if err != nil {
		return 0, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, maxBody)) // so that the connection can be used again
	return response.StatusCode, err
}

// request signs the event as of now: its ID is older than that, perhaps.
func (c *courier) request(ctx context.Context, e entry) (*http.Request, error) {
	now := time.Now().UTC()
	body, err := json.Marshal(event{Type: e.Object + "." + e.Status, Timestamp: now, Data: e})
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	signature, err := c.signer.Sign(eventID(e), now, body)
	if err != nil {
		return nil, fmt.Errorf("sign event: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(standardwebhooks.HeaderWebhookID, eventID(e))
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return request, nil
}

// close ends the deliveries that are under way; a next start goes on with them.
func (c *courier) close() error {
	c.cancel()
	defer c.client.CloseIdleConnections()
	return c.sent.close()
}

// pause reports false when the context ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
