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
		PodRef struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		}
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
	kubelet := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // of this node
	}}
	http.HandleFunc("GET /apis/"+group, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": []object{
			{"name": "pods", "singularName": "pod", "namespaced": true, "kind": "PodMetrics", "verbs": []string{"get", "list"}},
		}})
	})
	http.HandleFunc("GET /apis/"+group+"/namespaces/{namespace}/pods", func(w http.ResponseWriter, r *http.Request) {
		var node summary
		got, err := kubelet.Get(args[3] + "/stats/summary")
		if err == nil {
			defer func() { _ = got.Body.Close() }()
			err = json.NewDecoder(got.Body).Decode(&node)
		}
		if err != nil {
			http.Error(w, "ask the kubelet: "+err.Error(), http.StatusBadGateway)
			return
		}
		answer(w, object{"kind": "PodMetricsList", "apiVersion": group, "metadata": object{}, "items": node.of(r.PathValue("namespace"))})
	})
	log.Fatal(http.ListenAndServeTLS(args[0], args[1], args[2], nil))
}

// of are the PodMetrics of a namespace. A selector is ignored: the autoscaler looks for its own
// pods among them.
func (s summary) of(namespace string) []object {
	pods := []object{}
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
		pods = append(pods, object{"metadata": pod.PodRef, "containers": containers, "window": window,
			"timestamp": time.Now().UTC().Format(time.RFC3339)})
	}
	return pods
}

func answer(w http.ResponseWriter, body object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // or the caller has gone
}
