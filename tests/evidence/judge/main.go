// Judges reports of etcd_aio with the validators of etcd's own robustness tests, and what the client said with the log.
//
// For each folder that is named, the verdict is printed as one line of JSON. The exit status is 1 if one of them is wrong.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/validate"
)

const patience = 10 * time.Minute

// Verdict is what is told about a report.
type Verdict struct {
	Report     string            `json:"report"`
	Operations int               `json:"operations"`
	Events     int               `json:"events"`
	Persisted  int               `json:"persisted"`
	Etcd       map[string]string `json:"etcd"`
	Snapshots  int               `json:"snapshots"`
	Told       map[string]int    `json:"told"`
	Once       int               `json:"once"`
	Repeated   int               `json:"repeated"`
	Broken     []string          `json:"broken"`
	Seconds    float64           `json:"seconds"`
}

func main() {
	status := 0
	for _, folder := range os.Args[1:] {
		verdict, err := judge(folder)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", folder, err)
			status = 2
			continue
		}
		if len(verdict.Broken) > 0 && status == 0 {
			status = 1
		}
		line, _ := json.Marshal(verdict)
		fmt.Println(string(line))
	}
	os.Exit(status)
}

func judge(folder string) (*Verdict, error) {
	began := time.Now()
	// The validators print what differs; only the verdict goes to stdout.
	stdout := os.Stdout
	os.Stdout = os.Stderr
	defer func() { os.Stdout = stdout }()

	claims, err := loadClaims(folder)
	if err != nil {
		return nil, err
	}
	reports, err := report.LoadClientReports(folder)
	if err != nil {
		return nil, err
	}
	log, err := readLogs(folder)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(log.judged)
	lg, err := logger(folder)
	if err != nil {
		return nil, err
	}
	persisted, err := report.LoadClusterPersistedRequests(lg, log.judged)
	if err != nil {
		return nil, err
	}

	once, err := withoutIdleCopies(persisted)
	if err != nil {
		return nil, err
	}

	verdict := &Verdict{Report: filepath.Base(folder), Persisted: len(persisted), Broken: []string{}}
	for _, one := range reports {
		verdict.Operations += len(one.KeyValue)
		verdict.Events += one.WatchEventCount()
	}
	result := validate.ValidateAndReturnVisualize(lg, validate.Config{}, withoutLost(reports, once), once, patience)
	verdict.Etcd = map[string]string{
		"assumptions":     result.Assumptions.String(),
		"linearizability": result.Linearization.String(),
		"watches":         result.Watch.String(),
		"old revisions":   result.Serializable.String(),
	}
	for _, name := range []string{"assumptions", "linearizability", "watches", "old revisions"} {
		// A validator that did not run has said nothing: that is no success.
		if verdict.Etcd[name] != string(validate.Success) && verdict.Etcd[name] != "" {
			verdict.Broken = append(verdict.Broken, name)
		}
	}
	if len(verdict.Broken) == 0 && verdict.Etcd["old revisions"] == "" {
		verdict.Broken = append(verdict.Broken, "not judged")
	}
	if result.Assumptions.Error() == nil {
		// Of a history that is not linearizable, porcupine has no picture.
		if err := result.Linearization.Visualize(lg, filepath.Join(folder, "history.html")); err != nil {
			return nil, err
		}
	}
	verdict.check(claims, log, persisted)
	verdict.Seconds = time.Since(began).Seconds()
	return verdict, nil
}

// logger writes what the validators say about each broken guarantee to a file of the report.
func logger(folder string) (*zap.Logger, error) {
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(zap.ErrorLevel)
	config.DisableStacktrace = true
	config.OutputPaths = []string{filepath.Join(folder, "judge.log")}
	return config.Build()
}
