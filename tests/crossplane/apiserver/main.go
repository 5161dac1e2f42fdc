// Command apiserver says what kube-apiserver would say of a CustomResourceDefinition and of objects of its kind, by
// kube-apiserver's own code: structural schema, CEL rules and their cost, unknown fields, defaults, lists that are sets.
//
// Standard input: {"crd": CustomResourceDefinition, "cases": [{"object": {…}, "old": {…} or null}]}.
// Standard output: {"definition": [error], "cases": [{"errors": [error], "unknown": [path], "object": {…}}]}.
package main

import (
	"context"
	stdjson "encoding/json"
	"log"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

type request struct {
	CRD   stdjson.RawMessage `json:"crd"`
	Cases []struct {
		Object stdjson.RawMessage `json:"object"`
		Old    stdjson.RawMessage `json:"old"`
	} `json:"cases"`
}

type verdict struct {
	Errors  []string       `json:"errors"`
	Unknown []string       `json:"unknown"`
	Object  map[string]any `json:"object"`
}

type answer struct {
	Definition []string  `json:"definition"`
	Cases      []verdict `json:"cases"`
}

func main() {
	var in request
	must(stdjson.NewDecoder(os.Stdin).Decode(&in))
	crd := definition(in.CRD)
	out := answer{Definition: texts(validation.ValidateCustomResourceDefinition(context.Background(), crd))}
	// Conversion moves a schema that all versions share to the top.
	properties := crd.Spec.Validation
	if properties == nil {
		properties = crd.Spec.Versions[0].Schema
	}
	for _, c := range in.Cases {
		out.Cases = append(out.Cases, judge(properties.OpenAPIV3Schema, object(c.Object), object(c.Old)))
	}
	must(stdjson.NewEncoder(os.Stdout).Encode(out))
}

func definition(raw []byte) *apiextensions.CustomResourceDefinition {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	var v1 apiextensionsv1.CustomResourceDefinition
	must(stdjson.Unmarshal(raw, &v1))
	scheme.Default(&v1)
	var crd apiextensions.CustomResourceDefinition
	must(scheme.Convert(&v1, &crd, nil))
	// Written by the API server before it validates.
	for _, version := range crd.Spec.Versions {
		crd.Status.StoredVersions = append(crd.Status.StoredVersions, version.Name)
	}
	return &crd
}

func judge(properties *apiextensions.JSONSchemaProps, object, old map[string]any) verdict {
	structural, err := schema.NewStructural(properties)
	must(err)
	validator, _, err := schemavalidation.NewSchemaValidator(properties)
	must(err)
	unknown := pruning.PruneWithOptions(object, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.Default(object, structural)
	errors := schemavalidation.ValidateCustomResource(nil, object, validator)
	errors = append(errors, listtype.ValidateListSetsAndMaps(nil, structural, object)...)
	if rules := cel.NewValidator(structural, true, celconfig.PerCallLimit); rules != nil {
		var before any
		if old != nil {
			before = old
		}
		broken, _ := rules.Validate(context.Background(), nil, structural, object, before, celconfig.RuntimeCELCostBudget)
		errors = append(errors, broken...)
	}
	return verdict{Errors: texts(errors), Unknown: append([]string{}, unknown...), Object: object}
}

// object decodes as the API server does: whole numbers become integers.
func object(raw []byte) map[string]any {
	var decoded map[string]any
	if len(raw) > 0 {
		must(json.Unmarshal(raw, &decoded))
	}
	return decoded
}

func texts(errors field.ErrorList) []string {
	found := []string{}
	for _, err := range errors {
		found = append(found, err.Error())
	}
	return found
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
