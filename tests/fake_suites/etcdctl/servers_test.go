//go:build e2e

// Servers for etcd's common tests in place of those that their own runners start: a command that is told where to
// listen and how many members there are prints the endpoints, and ends by SIGTERM. The client is etcdctl.
package common

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/tests/v3/framework/config"
	"go.etcd.io/etcd/tests/v3/framework/e2e"
	intf "go.etcd.io/etcd/tests/v3/framework/interfaces"
)

const firstPort = 20000

func init() {
	testRunner = runner{}
	clusterTestCases = func() []testCase {
		return []testCase{
			{name: "OneMember", config: config.ClusterConfig{ClusterSize: 1}},
			{name: "ThreeMembers", config: config.ClusterConfig{ClusterSize: 3}},
		}
	}
}

type runner struct{}

func (runner) TestMain(m *testing.M) {
	e2e.InitFlags()
	os.Exit(m.Run())
}

func (runner) BeforeTest(testing.TB) {}

// NewCluster starts the command. Tokens are simple ones, whatever the test wants.
func (runner) NewCluster(ctx context.Context, tb testing.TB, opts ...config.ClusterOption) intf.Cluster {
	cfg := config.NewClusterConfig(opts...)
	if cfg.PeerTLS != config.NoTLS || cfg.ClientTLS != config.NoTLS {
		tb.Skip("needs TLS")
	}
	if cfg.QuotaBackendBytes != 0 || cfg.SnapshotCount != 0 || cfg.ClusterContext != nil {
		tb.Skip("needs flags of etcd")
	}
	words := strings.Split(os.Getenv("SERVER"), "\n")
	where := []string{fmt.Sprintf("--listen=127.0.0.1:%d", firstPort), fmt.Sprintf("--members=%d", cfg.ClusterSize)}
	command := exec.Command(words[0], append(words[1:], where...)...)
	command.Stderr = os.Stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := command.Start(); err != nil {
		tb.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		tb.Fatalf("the server has not started: %v", err)
	}
	found := &cluster{tb: tb, command: command, endpoints: strings.Split(strings.TrimSpace(line), ",")}
	tb.Cleanup(func() { found.Close() })
	return found
}

type cluster struct {
	tb        testing.TB
	command   *exec.Cmd
	endpoints []string
	isClosed  bool
}

func (c *cluster) Members() (members []intf.Member) {
	for _, endpoint := range c.endpoints {
		members = append(members, member{c, endpoint})
	}
	return members
}

func (c *cluster) Client(opts ...config.ClientOption) (intf.Client, error) {
	return newClient(c.endpoints, opts...)
}

func (c *cluster) WaitLeader(t testing.TB) int {
	for range 600 {
		for i, endpoint := range c.endpoints {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			isLeader := asksLeader(ctx, endpoint)
			cancel()
			if isLeader {
				return i
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("there is no leader")
	return -1
}

func (c *cluster) Close() error {
	if c.isClosed {
		return nil
	}
	c.isClosed = true
	c.command.Process.Signal(syscall.SIGTERM)
	return c.command.Wait()
}

func (c *cluster) Endpoints() []string { return c.endpoints }

func (c *cluster) TemplateEndpoints(tb testing.TB, pattern string) (found []string) {
	for _, endpoint := range c.endpoints {
		port := endpoint[strings.LastIndex(endpoint, ":")+1:]
		found = append(found, strings.ReplaceAll(pattern, "${MEMBER_PORT}", port))
	}
	return found
}

func (c *cluster) AssertAuthority(tb testing.TB, _ string) { tb.Skip("needs the log of etcd") }

type member struct {
	cluster  *cluster
	endpoint string
}

func (m member) Client() intf.Client {
	found, err := newClient([]string{m.endpoint})
	if err != nil {
		panic(err)
	}
	return found
}

func (m member) Start(context.Context) error {
	m.cluster.tb.Skip("needs control of processes")
	return nil
}

func (m member) Stop() { m.cluster.tb.Skip("needs control of processes") }

type etcdctl struct{ *e2e.EtcdctlV3 }

func newClient(endpoints []string, opts ...config.ClientOption) (intf.Client, error) {
	made, err := e2e.NewEtcdctl(e2e.ClientConfig{ConnectionType: e2e.ClientNonTLS}, endpoints, opts...)
	return etcdctl{made}, err
}

func asksLeader(ctx context.Context, endpoint string) bool {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	if err != nil {
		return false
	}
	defer client.Close()
	status, err := client.Status(ctx, endpoint)
	return err == nil && status.Leader == status.Header.MemberId
}

func WithAuth(name, password string) config.ClientOption { return e2e.WithAuth(name, password) }

func WithAuthToken(token string) config.ClientOption { return e2e.WithAuthToken(token) }

func WithEndpoints(endpoints []string) config.ClientOption { return e2e.WithEndpoints(endpoints) }

func WithDialTimeout(limit time.Duration) config.ClientOption { return e2e.WithDialTimeout(limit) }

func WithHTTP2Debug() config.ClusterOption { return e2e.WithHTTP2Debug() }

func WithUnixClient() config.ClusterOption { return e2e.WithUnixClient() }

func WithTCPClient() config.ClusterOption { return e2e.WithTCPClient() }
