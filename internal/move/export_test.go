package move

// AtSteps has a function be called after each step of a run, by its name: "marked", "closed",
// "copied" or "released".
func (o *Options) AtSteps(do func(name string)) { o.step = do }
