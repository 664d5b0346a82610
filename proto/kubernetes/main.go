// Writes what the types of Kubernetes say about their protobuf messages and their JSON, and objects in both forms.
//
//	go run . schema >../../etcd_aio/kubernetes/messages.txt
//	go run . objects >../../tests/unit/kubernetes/objects.jsonl
//
// The names, numbers and options of the fields are read from the struct tags of k8s.io/api by reflection.
package main

import (
	"fmt"
	"os"
	"reflect"
	"slices"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	admissionregistrationbeta "k8s.io/api/admissionregistration/v1beta1"
	apps "k8s.io/api/apps/v1"
	autoscaling1 "k8s.io/api/autoscaling/v1"
	autoscaling2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	batchbeta "k8s.io/api/batch/v1beta1"
	certificates "k8s.io/api/certificates/v1"
	certificatesbeta "k8s.io/api/certificates/v1beta1"
	coordination "k8s.io/api/coordination/v1"
	coordinationbeta "k8s.io/api/coordination/v1beta1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	discoverybeta "k8s.io/api/discovery/v1beta1"
	events "k8s.io/api/events/v1"
	eventsbeta "k8s.io/api/events/v1beta1"
	extensionsbeta "k8s.io/api/extensions/v1beta1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	flowcontrolbeta3 "k8s.io/api/flowcontrol/v1beta3"
	networking "k8s.io/api/networking/v1"
	networkingbeta "k8s.io/api/networking/v1beta1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	policybeta "k8s.io/api/policy/v1beta1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	resourcebeta "k8s.io/api/resource/v1beta1"
	resourcebeta2 "k8s.io/api/resource/v1beta2"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	storagebeta "k8s.io/api/storage/v1beta1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type kind struct {
	schema.GroupVersionKind
	reflect.Type
}

// Kinds that are stored, in the order of their names: those with metadata that are no lists.
func kinds() []kind {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistration.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme, apps.AddToScheme,
		autoscaling1.AddToScheme, autoscaling2.AddToScheme, batch.AddToScheme, certificates.AddToScheme,
		coordination.AddToScheme, core.AddToScheme, discovery.AddToScheme, events.AddToScheme, flowcontrol.AddToScheme,
		networking.AddToScheme, node.AddToScheme, policy.AddToScheme, rbac.AddToScheme, resource.AddToScheme,
		scheduling.AddToScheme, storage.AddToScheme,
		admissionregistrationbeta.AddToScheme, batchbeta.AddToScheme, certificatesbeta.AddToScheme, coordinationbeta.AddToScheme, discoverybeta.AddToScheme, eventsbeta.AddToScheme, extensionsbeta.AddToScheme, flowcontrolbeta3.AddToScheme, networkingbeta.AddToScheme, policybeta.AddToScheme, resourcebeta.AddToScheme, resourcebeta2.AddToScheme, storagebeta.AddToScheme,
	} {
		check(add(scheme))
	}
	var found []kind
	for name, kindType := range scheme.AllKnownTypes() {
		field, ok := kindType.FieldByName("ObjectMeta")
		if ok && field.Type == reflect.TypeOf(meta.ObjectMeta{}) {
			found = append(found, kind{name, kindType})
		}
	}
	slices.SortFunc(found, func(a, b kind) int {
		if a.GroupVersionKind.String() < b.GroupVersionKind.String() {
			return -1
		}
		return 1
	})
	return found
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "schema":
		writeSchema()
	case len(os.Args) == 2 && os.Args[1] == "objects":
		writeObjects()
	default:
		check(fmt.Errorf("usage: %s schema|objects", os.Args[0]))
	}
}
