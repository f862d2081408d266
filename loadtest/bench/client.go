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
	// answerTimeout bounds the wait for one answer of a middleware.
	answerTimeout = 10 * time.Second

	orderBody    = `{"customer_id":"cus_1","items":[{"sku":"tee-black","quantity":2}]}`
	orderRequest = "POST /orders HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s"
)

// drive has each of so many connections send its next order when the last one is answered, for a
// while, and returns how many were answered, also a second. The answers must be 201.
func drive(ctx context.Context, addr string, connections int, period time.Duration, key func(connection, n int) string) (sample, error) {
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
			answers := bufio.NewReader(conn)
			for n := 0; time.Since(began) < period && ctx.Err() == nil; n++ {
				if _, err := post(conn, answers, key(i, n)); err != nil {
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

// checkReplays sends each key that is repeated twice: none may be in progress afterwards, and a
// middleware that executes one again must not be measured.
func checkReplays(ctx context.Context, addr string, want bool) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	answers := bufio.NewReader(conn)
	for n := range repeated {
		first, err := post(conn, answers, replayed(0, n))
		if err != nil {
			return err
		}
		again, err := post(conn, answers, replayed(0, n))
		if err != nil {
			return err
		}
		if (first == again) != want {
			return fmt.Errorf("the answers to one key are %s and %s", first, again)
		}
	}
	return nil
}

// post sends one order, and returns the body of its answer. It needs less CPU than net/http's
// client: what the client uses, the server lacks.
func post(conn net.Conn, answers *bufio.Reader, key string) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, orderRequest, key, len(orderBody), orderBody); err != nil {
		return "", err
	}
	answer, err := http.ReadResponse(answers, nil)
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
