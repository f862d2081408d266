// Command podmetrics is the least of a metrics server: it tells the autoscaler what the kubelet of
// one node measures (metrics.k8s.io/v1beta1). Compiling the real one takes minutes.
//
//	podmetrics ADDRESS CERTIFICATE KEY KUBELET_URL
package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

const (
	group = "metrics.k8s.io/v1beta1"
	// window is for how long the kubelet averages; the autoscaler compares it with a pod's age.
	window = "15s"
)

// summary is a part of the kubelet's /stats/summary.
type summary struct {
	Pods []struct {
		PodRef     struct{ Name, Namespace string }
		Containers []struct {
			Name   string
			CPU    struct{ UsageNanoCores uint64 }
			Memory struct{ WorkingSetBytes uint64 }
		}
	}
}

type object = map[string]any

func main() {
	args := os.Args[1:]
	if len(args) != 4 {
		log.Fatal("usage: podmetrics ADDRESS CERTIFICATE KEY KUBELET_URL")
	}
	kubelet := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // of this node
	}}
	http.HandleFunc("GET /apis/"+group, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": []object{
			{"name": "pods", "singularName": "pod", "namespaced": true, "kind": "PodMetrics", "verbs": []string{"get", "list"}},
		}})
	})
	http.HandleFunc("GET /apis/"+group+"/namespaces/{namespace}/pods", func(w http.ResponseWriter, r *http.Request) {
		node, err := ask(kubelet, args[3])
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		answer(w, object{"kind": "PodMetricsList", "apiVersion": group, "metadata": object{}, "items": node.of(r.PathValue("namespace"))})
	})
	log.Fatal(http.ListenAndServeTLS(args[0], args[1], args[2], nil))
}

func ask(kubelet *http.Client, url string) (node summary, err error) {
	got, err := kubelet.Get(url + "/stats/summary")
	if err != nil {
		return node, fmt.Errorf("ask the kubelet: %w", err)
	}
	defer func() { _ = got.Body.Close() }()
	return node, json.NewDecoder(got.Body).Decode(&node)
}

// of are the PodMetrics of a namespace. A selector is ignored: the autoscaler looks for its own
// pods among them.
func (s summary) of(namespace string) []object {
	pods, now := []object{}, time.Now().UTC().Format(time.RFC3339)
	for _, pod := range s.Pods {
		if pod.PodRef.Namespace != namespace {
			continue
		}
		containers := []object{}
		for _, c := range pod.Containers {
			containers = append(containers, object{"name": c.Name, "usage": object{
				"cpu": fmt.Sprintf("%dn", c.CPU.UsageNanoCores), "memory": fmt.Sprint(c.Memory.WorkingSetBytes),
			}})
		}
		pods = append(pods, object{
			"metadata": object{"name": pod.PodRef.Name, "namespace": namespace}, "timestamp": now, "window": window, "containers": containers,
		})
	}
	return pods
}

func answer(w http.ResponseWriter, body object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // or the caller has gone
}
