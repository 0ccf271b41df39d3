package doctor_test

// replayDamages are damages of replays. Alice has one running replay.
var replayDamages = []damage{
	{name: "nothing, with a replay, and one that has expired", does: func(p *patient) {
		withReplay(p)
		p.Redis.SAdd(p.ctx, "replays:of:alice--1", "BAAABBBBCCCCDDDDEEEE")
	}},
	{name: "a replay that its subscriber does not list", does: func(p *patient) {
		withReplay(p)
		p.Redis.Del(p.ctx, "replays:of:alice--1")
	}, finds: []string{`replay:AAAABBBBCCCCDDDDEEEE: is not in replays:of:alice [added there]`}},
	{name: "a replay that runs and is not listed", does: func(p *patient) {
		withReplay(p)
		p.Redis.SRem(p.ctx, "replays:running", anUID)
		p.Redis.Del(p.ctx, "replays:batches:"+anUID)
	}, finds: []string{`replay:AAAABBBBCCCCDDDDEEEE: is not in replays:running [added there]`}},
	{name: "a replay that is gone, and batches of one that is over", does: func(p *patient) {
		p.Redis.SAdd(p.ctx, "replays:running", anUID)
		p.Redis.SAdd(p.ctx, "replays:batches:"+anUID, "x")
		p.Redis.SAdd(p.ctx, "replays:batches:BAAABBBBCCCCDDDDEEEE", "x")
	}, finds: []string{
		`replays:running: lists AAAABBBBCCCCDDDDEEEE, which is not there [removed]`,
		`replays:batches:BAAABBBBCCCCDDDDEEEE: is of a replay that is over [removed]`,
	}},
	{name: "a replay of nobody", does: func(p *patient) {
		withReplay(p)
		p.Redis.HSet(p.ctx, "replay:"+anUID, "token", "zoe--26")
		p.Redis.Rename(p.ctx, "replays:of:alice--1", "replays:of:zoe--26")
	}, finds: []string{
		`replay:AAAABBBBCCCCDDDDEEEE: is of no subscriber [removed]`,
		`replays:of:client-4e337076: is of no subscriber [removed]`,
	}},
}

// withReplay writes a replay as its steps do.
func withReplay(p *patient) {
	p.Redis.HSet(p.ctx, "replay:"+anUID, "token", "alice--1", "topic", "widgets", "next", 1, "to", 2,
		"copied", 0, "skipped", 0, "state", "running", "created_at", 1)
	p.Redis.SAdd(p.ctx, "replays:running", anUID)
	p.Redis.SAdd(p.ctx, "replays:of:alice--1", anUID)
	p.Redis.SAdd(p.ctx, "replays:batches:"+anUID, "x")
	p.RequireSound()
}
