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
	labelPath    = machinePath + "/labels/{label}"
)

// Pages are the pages.
func Pages() []page.Page {
	all := []page.Page{
		{Path: machinesPath, Template: "machines", Nav: "Machines", Group: page.Services, For: page.Members, Load: loadMachines},
		{Path: machinePath, Template: "machine", For: page.Members, Load: loadMachine},
		{Path: labelPath, Template: "label", For: page.Members, Load: loadLabel},
	}
	for _, a := range actions {
		all = append(all, a.page())
	}
	return all
}

func loadMachines(v *page.Visit) (any, error) {
	return view.Machines.Page(v.Figures.Machines, view.ParseQuery(v.Request.URL.Query())), nil
}
