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

const (
	// answerTimeout is what a connection gets beside its load.
	answerTimeout = 10 * time.Second

	orderBody    = `{"customer_id":"cus_1","items":[{"sku":"tee-black","quantity":2}]}`
	orderRequest = "POST /orders HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s"
)

// keys are those of a load: each connection takes turns with so many of its own.
type keys struct {
	of     string
	number int
}

// drive has each of so many connections send its next order when the last one is answered, for a
// while, and returns how many were answered, also a second. The answers must be 201.
func drive(ctx context.Context, addr string, connections int, period time.Duration, k keys) (sample, error) {
	group, ctx := errgroup.WithContext(ctx)
	var answered atomic.Int64
	began := time.Now()
	for i := range connections {
		group.Go(func() error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			if err := conn.SetDeadline(began.Add(period + answerTimeout)); err != nil {
				return err
			}
			answers := bufio.NewReader(conn)
			for n := 0; time.Since(began) < period && ctx.Err() == nil; n++ {
				if err := post(conn, answers, fmt.Sprintf("%s-%d-%d", k.of, i, n%k.number)); err != nil {
					return err
				}
				answered.Add(1)
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	n := float64(answered.Load())
	return sample{"answered": n, "rate": n / time.Since(began).Seconds()}, err
}

// post sends one order. It needs less CPU than net/http's client: what the client uses, the server
// lacks.
func post(conn net.Conn, answers *bufio.Reader, key string) error {
	if _, err := fmt.Fprintf(conn, orderRequest, key, len(orderBody), orderBody); err != nil {
		return err
	}
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusCreated {
		err = fmt.Errorf("answer %s: %s", answer.Status, body)
	}
	return err
}
