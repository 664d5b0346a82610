// What the examples of etcd's Go client need beside them: the endpoints of a server that runs.
package clientv3_test

import (
	"os"
	"strings"
	"time"
)

const (
	dialTimeout    = 20 * time.Second
	requestTimeout = 20 * time.Second
)

func exampleEndpoints() []string { return strings.Split(os.Getenv("ENDPOINTS"), ",") }

func forUnitTestsRunInMockedContext(_ func(), example func()) { example() }
