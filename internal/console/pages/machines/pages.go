// Package machines has the pages of state machines and of their labels.
package machines

import (
	"routemaster/internal/console/page"
	"routemaster/internal/console/view"
)

// The paths of the pages.
const (
	machinesPath = "machines"
	machinePath  = machinesPath + "/{machine}"
	createPath   = machinePath + "/create"
	labelPath    = machinePath + "/labels/{label}"
	mergePath    = labelPath + "/metadata"
)

// labelRoute is a label in the API.
const labelRoute = "/state-machines/{machine}/labels/{label}"

// Pages are the pages.
func Pages() []page.Page {
	all := []page.Page{
		{Path: machinesPath, Template: "machines", Nav: "Machines", Group: page.Services, For: page.Members, Load: loadMachines},
		{Path: machinePath, Template: "machine", For: page.Members, Load: loadMachine},
		{Path: createPath, Template: "new-label", For: page.Members, Load: loadCreate, Submit: submitCreate, Calls: "POST " + labelRoute},
		{Path: labelPath, Template: "label", For: page.Members, Load: loadLabel},
		{Path: mergePath, Template: "metadata", For: page.Members, Load: loadMerge, Submit: submitMerge, Calls: "PATCH " + labelRoute},
	}
	for _, a := range actions {
		all = append(all, a.page())
	}
	return all
}

func loadMachines(v *page.Visit) (any, error) {
	return view.Machines.Page(v.Figures.Machines, view.ParseQuery(v.Request.URL.Query())), nil
}
