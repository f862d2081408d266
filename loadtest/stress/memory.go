package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// memoryInterval is fine enough for a peak that matters.
	memoryInterval = time.Second
	residentMetric = "process_resident_memory_bytes"
)

// watchMemory follows the replicas' resident memory until the returned
// function is called, which tells each one's peak in bytes. A replica that
// doesn't say is left out: not every system knows it.
func watchMemory(ctx context.Context, cfg config, client *http.Client) (stop func() map[string]uint64) {
	ctx, cancel := context.WithCancel(ctx)
	peaks := make(chan map[string]uint64, 1)
	go func() {
		peak := map[string]uint64{}
		ticker := time.NewTicker(memoryInterval)
		defer ticker.Stop()
		for ctx.Err() == nil {
			for name, url := range map[string]string{"api-1": cfg.Ops1URL, "api-2": cfg.Ops2URL} {
				if bytes, err := residentMemory(ctx, client, url); err == nil {
					peak[name] = max(peak[name], bytes)
				}
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
		peaks <- peak
	}()
	return func() map[string]uint64 { cancel(); return <-peaks }
}

func residentMemory(ctx context.Context, client *http.Client, url string) (uint64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), residentMetric+" "); ok {
			bytes, err := strconv.ParseFloat(value, 64)
			return uint64(bytes), err
		}
	}
	return 0, fmt.Errorf("%s: no %s", url, residentMetric)
}
