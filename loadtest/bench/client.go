package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// answerTimeout bounds the wait for one answer of a middleware.
const answerTimeout = 10 * time.Second

// connection sends one request after the other, with less CPU than net/http's client: what the
// client uses, the server lacks.
type connection struct {
	net.Conn
	answers *bufio.Reader
	request []byte
}

func dial(ctx context.Context, addr string) (*connection, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, answers: bufio.NewReader(conn)}, nil
}

const orderBody = `{"customer_id":"cus_1","items":[{"sku":"tee-black","quantity":2}]}`

// post sends an order with a key, and returns the body of the answer, which must be 201.
func (c *connection) post(key string) (string, error) {
	c.request = fmt.Appendf(c.request[:0], "POST /orders HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"+
		"Idempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s", key, len(orderBody), orderBody)
	if err := c.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return "", err
	}
	if _, err := c.Write(c.request); err != nil {
		return "", err
	}
	answer, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusCreated {
		err = fmt.Errorf("answer %s: %s", answer.Status, body)
	}
	return string(body), err
}

// drive has each of so many connections send its next request when the last one is answered, for a
// while, and returns how many were answered, also a second.
func drive(ctx context.Context, addr string, connections int, period time.Duration, key func(connection, n int) string) (sample, error) {
	group, ctx := errgroup.WithContext(ctx)
	var answered atomic.Int64
	began := time.Now()
	for i := range connections {
		group.Go(func() error {
			c, err := dial(ctx, addr)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			n := 0
			for ; time.Since(began) < period && ctx.Err() == nil; n++ {
				if _, err := c.post(key(i, n)); err != nil {
					return err
				}
			}
			answered.Add(int64(n))
			return ctx.Err()
		})
	}
	err := group.Wait()
	n := float64(answered.Load())
	return sample{"answered": n, "rate": n / time.Since(began).Seconds()}, err
}
