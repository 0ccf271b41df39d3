package console

import (
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

// machinePages are the pages.
func machinePages() []Page {
	all := []Page{
		{Path: machinesPath, Template: "machines", Nav: "Machines", Group: Services, For: Members, Load: loadMachines},
		{Path: machinePath, Template: "machine", For: Members, Load: loadMachine},
		{Path: createPath, Template: "new-label", For: Members, Load: loadCreate, Submit: submitCreate, Calls: "POST " + labelRoute},
		{Path: labelPath, Template: "label", For: Members, Load: loadLabel},
		{Path: mergePath, Template: "metadata", For: Members, Load: loadMerge, Submit: submitMerge, Calls: "PATCH " + labelRoute},
	}
	for _, a := range labelActions {
		all = append(all, a.page())
	}
	return all
}

func loadMachines(v *Visit) (any, error) {
	return view.Machines.Page(v.Figures.Machines, view.ParseQuery(v.Request.URL.Query())), nil
}
