package task

import (
	"context"
	"iter"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Target is an agent as tasks see it.
type Target struct {
	ID     string
	Org    string
	Public bool // reachable from other orgs
}

// Key names the agent.
func (t Target) Key() AgentKey { return AgentKey{t.Org, t.ID} }

// Directory finds agents; an unknown or disabled one is NotFound.
type Directory interface {
	// Target returns the agent that callers of an org reach under an id: its own one or
	// else the public one. hidden is the public agent of another org that the own one
	// hides; nil: there is none.
	Target(ctx context.Context, org, id string) (t Target, hidden *Target, err error)
	// Own returns an agent of the org.
	Own(ctx context.Context, org, id string) (Target, error)
}

// Bus carries hints between nodes. A hint may be lost: the log is the truth, and
// a slow poll finds what a hint did not tell.
type Bus interface {
	Publish(topic string)
}

// Options are what the service is made of.
type Options struct {
	Store     Store
	Directory Directory
	Bus       Bus // nil: this is the only node
	Now       func() time.Time
	NewID     func(prefix string) string
	Limits    Limits
	Quotas    Quotas
	Node      string // names this process in leases of agents that run in it
	OnError   func(error)

	// PushURL says whether events may be pushed to an address, in words that follow
	// the field's name; nil: push notifications are off.
	PushURL   func(rawURL string) error
	Pusher    Pusher // nil: nothing is pushed from here
	PushRetry PushRetry
	OnPush    func(PushOutcome) // is told of every attempt; nil: nobody is
}

// Tasks is the service.
type Tasks struct {
	Options
	hub     *hub
	desk    *desk
	queues  *signals
	running *running
	runners *runners
	seen    *sightings
	refused *refusals
	loads   *loads
	cache   *cache
	pusher  *pushLoop
	quotas  *quotas
	replays *replays

	encodings shared[encodingKey, Encoding]

	stopping context.Context // a signal, not a request's context
	stop     context.CancelFunc
}

// New makes the service; Run must be running for leases to expire and hints to
// be followed up.
func New(o Options) *Tasks {
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	stopping, stop := context.WithCancel(context.Background())
	s := &Tasks{
		Options: o, hub: newHub(o.Store, stopping.Done()), desk: newDesk(), queues: newSignals(), running: newRunning(), seen: newSightings(), refused: newRefusals(),
		loads: &loads{}, cache: newCache(), stopping: stopping, stop: stop,
		quotas: newQuotas(&o), replays: newReplays(),
	}
	s.runners = newRunners(s)
	s.pusher = newPushLoop(s)
	return s
}

// Stop ends every wait, so that requests that wait for something end soon.
func (s *Tasks) Stop() { s.stop() }

// Stopping is closed by Stop.
func (s *Tasks) Stopping() <-chan struct{} { return s.stopping.Done() }

// Call is proof that a principal may send tasks to an agent.
type Call struct {
	target Target
	// hidden is a public agent of another org with the id of the target, which is of the
	// sender's own org. New tasks go to the target; those that the sender sent to the
	// hidden one, before its org had an agent of that id, are still found.
	hidden *Target
	sender identity.Principal
}

// Target is the agent that may be called.
func (c Call) Target() Target { return c.target }

// Reach checks that the caller may call the agent. Scope and restriction are
// checked before the agent is looked up, so a refusal says nothing about which
// agents exist.
func (s *Tasks) Reach(ctx context.Context, c *identity.Caller, agent string) (Call, error) {
	if !identity.ValidAgentID(agent) {
		return Call{}, errs.ErrNotFound
	}
	org := ""
	if c != nil {
		org = c.Org
	}
	a, err := identity.Authorize(c, org, identity.CallAgent)
	if err != nil {
		return Call{}, err
	}
	if !a.ReachesAgent(agent) {
		return Call{}, refuseAgent("call", agent)
	}
	target, hidden, err := s.Directory.Target(ctx, a.Org(), agent)
	if err != nil {
		return Call{}, err
	}
	if target.Org != a.Org() && !target.Public {
		return Call{}, errs.ErrNotFound
	}
	return Call{target: target, hidden: hidden, sender: a.Principal()}, nil
}

// Still checks that the caller may still call an agent of an org under its id.
func (s *Tasks) Still(ctx context.Context, c *identity.Caller, agent AgentKey) error {
	now, err := s.Reach(ctx, c, agent.ID)
	if err == nil && now.target.Org != agent.Org && (now.hidden == nil || now.hidden.Org != agent.Org) {
		err = errs.ErrNotFound
	}
	return err
}

// Aim returns the call for what concerns one task: the agent that it is for is the one
// that has the task. A task that does not exist is for the target.
func (s *Tasks) Aim(ctx context.Context, c Call, id string) (Call, error) {
	if c.hidden == nil {
		return c, nil
	}
	own, other := Call{target: c.target, sender: c.sender}, Call{target: *c.hidden, sender: c.sender}
	if id == "" || len(checkID("", id)) > 0 {
		return own, nil
	}
	for _, c := range []Call{own, other} {
		_, err := s.Store.TaskByKey(ctx, s.key(c, id), Content{})
		if err == nil || errs.KindOf(err) != errs.NotFound {
			return c, err
		}
	}
	return own, nil
}

func refuseAgent(verb, agent string) error {
	e := errs.New(errs.Forbidden, "auth.agent_out_of_scope", "this key may not %s the agent %q; it needs the scope agent:%s", verb, agent, agent)
	e.Scope = "agent:" + agent
	return e
}

// SendRequest asks for a task, or for a further turn of one.
type SendRequest struct {
	ID         string // empty: a new task with an id of ours
	Message    Message
	ContextID  string
	FollowupID string
	Metadata   []byte // a JSON object
	// OutputModes are the media types that the sender accepts; nil: it does not say.
	OutputModes []string
	// MustExist refuses an id that the sender has not used before, and a context that
	// is not the task's.
	MustExist bool
	// Push is set in the same write; nil: none.
	Push *PushConfig
	// Waiting is called when the message is stored and Send begins to wait; nil: nothing
	// is.
	Waiting func()
	// Show is how much of a known task is returned.
	Show Content
}

func (r *SendRequest) check() error {
	f := r.Message.Check("/message")
	f = append(f, checkID("/id", r.ID)...)
	f = append(f, checkID("/contextId", r.ContextID)...)
	f = append(f, checkObject("/metadata", r.Metadata)...)
	f = append(f, checkIDs("/configuration/acceptedOutputModes", r.OutputModes)...)
	if len(f) > 0 {
		return errs.InvalidFields(f...)
	}
	return nil
}

// Send sends a task, or a further message on one. The answer is given when it is
// durable; with wait it is given when the task rests or the time is over.
func (s *Tasks) Send(ctx context.Context, c Call, r SendRequest, wait time.Duration) (Task, error) {
	sent, err := s.send(ctx, c, r, wait > 0)
	t, topic := sent.task, sent.topic
	if err != nil || topic == nil {
		return t, err
	}
	defer s.hub.leave(topic)
	if t.State.Rests() {
		return t, nil
	}
	if t.Size > maxFolded { // nothing large is held while the agent works
		t.History, t.Artifacts, r.Message = nil, nil, Message{}
	}
	if r.Waiting != nil {
		r.Waiting()
	}
	budget.From(ctx).Settle()
	whole, err := s.await(ctx, topic, &t, wait)
	if err != nil || whole {
		return t, err
	}
	budget.From(ctx).Insist()
	return s.loadStored(ctx, &t, r.Show)
}

// maxFolded is the size up to which a task is folded while it is waited for. A larger
// one is read when the wait is over.
const maxFolded = 16 << 10

// await follows a task until it rests or the time is over. Unless t is whole, only its
// state is kept up to date.
func (s *Tasks) await(ctx context.Context, topic *topic, t *Task, wait time.Duration) (whole bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	size := t.Size
	for e, err := range s.hub.events(ctx, topic, t.Seq, 0) {
		if err != nil && ctx.Err() == nil {
			return false, err
		}
		if err != nil {
			break // the time is over, not the task
		}
		size += e.Size()
		switch {
		case size > maxFolded || e.Kind == TurnEvent && e.Message == nil:
			size = maxFolded + 1
			t.History, t.Artifacts, t.Seq = nil, nil, e.Seq
			if e.Kind == StatusEvent {
				t.State = e.State
			}
		default:
			t.Apply(&e)
		}
		if t.State.Rests() {
			break
		}
	}
	return size <= maxFolded, nil
}

// Stream sends as Send does and yields what comes of it: the events of the send
// itself and all that follow. A send that was only repeated yields the task's
// events from the first. What idle is, events says; the returned task is as of now.
func (s *Tasks) Stream(ctx context.Context, c Call, r SendRequest, idle time.Duration) (Task, iter.Seq2[Event, error], error) {
	sent, err := s.send(ctx, c, r, true)
	if err != nil {
		return Task{}, nil, err
	}
	return sent.task, s.stream(ctx, sent.topic, sent.before, idle), nil
}

// FromNow is a cursor behind what the returned task shows.
const FromNow = -1

// Follow yields the events of a task after a cursor; the returned task is as of
// now, without history and artifacts.
func (s *Tasks) Follow(ctx context.Context, c Call, id string, after int64, idle time.Duration) (Task, iter.Seq2[Event, error], error) {
	t, err := s.Get(ctx, c, id, Content{})
	if err != nil {
		return t, nil, err
	}
	if after == FromNow {
		after = t.Seq
	}
	if t.State.Terminal() && after >= t.Seq {
		return t, func(func(Event, error) bool) {}, nil
	}
	ref := Ref{t.Org, t.UID}
	topic := s.hub.follow(ref, t.Sender.Org, t.Seq)
	// Between the read and the follow something may have happened that nobody here
	// was told of.
	go s.hub.hint(context.WithoutCancel(ctx), ref)
	return t, s.stream(ctx, topic, after, idle), nil
}

// stream yields events until the task ends, then leaves the topic.
func (s *Tasks) stream(ctx context.Context, topic *topic, after int64, idle time.Duration) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		defer s.hub.leave(topic)
		s.hub.events(ctx, topic, after, idle)(yield)
	}
}

// sent is what a send leads to.
type sent struct {
	task   Task
	before int64  // the events after it are those of the send
	topic  *topic // if it is to be followed; must be left
}

// send writes the task or the turn. If follow is set the caller gets the topic of
// the task, and must leave it.
func (s *Tasks) send(ctx context.Context, c Call, r SendRequest, follow bool) (sent, error) {
	if err := r.check(); err != nil {
		return sent{}, err
	}
	c, err := s.Aim(ctx, c, r.ID)
	if err != nil {
		return sent{}, err
	}
	push, err := s.sendPush(&r)
	if err != nil {
		return sent{}, err
	}
	r.Push = push
	if r.MustExist {
		return s.turn(ctx, c, r, follow)
	}
	room, refusal := s.admit(ctx, c, &r)
	if r.ID == "" {
		if refusal != nil {
			return sent{}, refusal
		}
		r.ID = s.NewID("t-")
	}
	if refusal == nil {
		done, err := s.insert(ctx, c, r, follow)
		room.settle(mayBeWritten(err))
		if err == nil || errs.KindOf(err) != errs.Conflict {
			return done, err
		}
	}
	done, err := s.turn(ctx, c, r, follow)
	if refusal != nil && errs.KindOf(err) == errs.NotFound {
		err = refusal // it would have been a new task
	}
	return done, err
}

// newTask is the room for a new task and its push configuration.
type newTask struct{ task, push reservation }

func (n *newTask) settle(written bool) {
	n.task.settle(written)
	n.push.settle(written)
}

// admit reserves room for a new task, or refuses it if a quota is used up.
func (s *Tasks) admit(ctx context.Context, c Call, r *SendRequest) (room newTask, err error) {
	if r.Push != nil {
		if room.push, err = s.quotas.admitPush(ctx, c.sender); err != nil {
			return newTask{}, err
		}
	}
	if room.task, err = s.quotas.admitTask(ctx, c); err != nil {
		room.push.settle(false)
		return newTask{}, err
	}
	return room, nil
}

// insert makes a new task. A worker that waits on this node, or an agent that
// runs in it, gets it in the same write.
func (s *Tasks) insert(ctx context.Context, c Call, r SendRequest, follow bool) (sent, error) {
	now := s.Now()
	t := Task{
		UID: s.NewID(""), Org: c.target.Org, Agent: c.target.ID, Sender: c.sender, ID: r.ID, ContextID: r.ContextID,
		FollowupID: r.FollowupID, Metadata: r.Metadata,
	}
	if t.ContextID == "" {
		t.ContextID = s.NewID("ctx-")
	}
	place := s.place(c.target.Key())
	var lease *Lease
	if place != nil {
		lease = &Lease{Token: s.leaseToken(t.UID), Worker: place.worker, ExpiresAt: now.Add(place.length)}
	}
	change, err := decideNew(t, r.Message, r.OutputModes, lease, s.Limits, now)
	if err != nil {
		place.free()
		return sent{}, err
	}
	change.Push, change.Task.Push = r.Push, r.Push != nil
	ref := Ref{t.Org, t.UID}
	var followed *topic
	if follow {
		followed = s.hub.follow(ref, c.sender.Org, 0)
	}
	if err := s.Store.InsertTask(ctx, change, place.leaseLength()); err != nil {
		place.free()
		if followed != nil {
			s.hub.leave(followed)
		}
		return sent{}, err
	}
	t = fold(change)
	s.publish(change)
	place.start(t)
	return sent{task: t, topic: followed}, nil
}

// turn adds a message to a task that the sender has.
func (s *Tasks) turn(ctx context.Context, c Call, r SendRequest, follow bool) (sent, error) {
	now := s.Now()
	var guard *pushGuard
	if r.Push != nil {
		guard = s.newPushGuard(ctx, c.sender)
	}
	change, err := s.Store.UpdateTaskByKey(ctx, s.key(c, r.ID), r.Message.length(), func(cur Current) (Change, error) {
		if r.MustExist && r.ContextID != "" && r.ContextID != cur.Task.ContextID {
			return Change{}, errs.InvalidFields(field("/message/contextId", "must be the context of the task, or be left out"))
		}
		change, err := decideTurn(cur.Task, &r, s.Limits, now)
		if change.Push = r.Push; guard != nil {
			change.PushGuard = guard.of(&cur.Task)
		}
		return change, err
	})
	guard.end(err)
	if err != nil {
		return sent{}, err
	}
	ref := Ref{change.Task.Org, change.Task.UID}
	done := sent{before: change.Task.Seq - int64(len(change.Events))}
	if follow {
		done.topic = s.hub.follow(ref, c.sender.Org, done.before)
	}
	s.publish(change)
	if len(change.Events) == 0 {
		done.before = 0 // repeated: its events may be any
	}
	if done.task, err = s.loadStored(ctx, &change.Task, r.Show); err != nil {
		if done.topic != nil {
			s.hub.leave(done.topic)
		}
		return sent{}, err
	}
	if done.topic != nil {
		go s.hub.hint(context.WithoutCancel(ctx), ref)
	}
	return done, nil
}

func (s *Tasks) key(c Call, id string) Key {
	return Key{Org: c.target.Org, Agent: c.target.ID, Sender: c.sender, ID: id}
}

// Get returns a task of the caller's. It may show more than was asked for.
func (s *Tasks) Get(ctx context.Context, c Call, id string, l Content) (Task, error) {
	if len(checkID("", id)) > 0 || id == "" {
		return Task{}, errs.ErrNotFound
	}
	c, err := s.Aim(ctx, c, id)
	if err != nil {
		return Task{}, err
	}
	k := s.key(c, id)
	t, mark, ok := s.cache.get(k)
	if ok {
		return t, budget.From(ctx).Take(ctx, t.Size)
	}
	t, err = load(ctx, l, func(l Content) (Task, error) { return s.Store.TaskByKey(ctx, k, l) })
	if err == nil && l.History && l.Artifacts && l.Clip == 0 && (s.Bus == nil || t.State.Terminal()) {
		s.cache.put(k, t, mark)
	}
	return t, err
}

// Artifact returns one artifact of a task of the caller's, by its number in Task.Artifacts.
func (s *Tasks) Artifact(ctx context.Context, c Call, id string, number int) (Artifact, error) {
	if len(checkID("", id)) > 0 || id == "" {
		return Artifact{}, errs.ErrNotFound
	}
	c, err := s.Aim(ctx, c, id)
	if err != nil {
		return Artifact{}, err
	}
	t, err := s.Store.TaskByKey(ctx, s.key(c, id), Content{})
	if err != nil {
		return Artifact{}, err
	}
	return s.artifact(ctx, t.Org, t.UID, number)
}

// artifact reads an artifact for a response, when there is memory for it.
func (s *Tasks) artifact(ctx context.Context, org, uid string, number int) (Artifact, error) {
	return s.Store.TaskArtifact(ctx, org, uid, number, func(bytes int64) error {
		return budget.From(ctx).Take(ctx, bytes)
	})
}

// Cancel ends a task of the caller's and returns as much of it as was asked for.
func (s *Tasks) Cancel(ctx context.Context, c Call, id string, l Content) (Task, error) {
	if len(checkID("", id)) > 0 || id == "" {
		return Task{}, errs.ErrNotFound
	}
	c, err := s.Aim(ctx, c, id)
	if err != nil {
		return Task{}, err
	}
	now := s.Now()
	change, err := s.Store.UpdateTaskByKey(ctx, s.key(c, id), 0, func(cur Current) (Change, error) {
		return decideCancel(cur.Task, now)
	})
	if err != nil {
		return Task{}, err
	}
	s.publish(change)
	return s.loadStored(ctx, &change.Task, l)
}

// Recall cancels a task on behalf of the org whose agent has it.
func (s *Tasks) Recall(ctx context.Context, org, uid string) error {
	now := s.Now()
	change, err := s.Store.UpdateTask(ctx, org, uid, 0, func(cur Current) (Change, error) { return decideCancel(cur.Task, now) })
	if err == nil {
		s.publish(change)
	}
	return err
}

// OrgTasks lists the tasks of the org's agents, whoever sent them; for admins.
func (s *Tasks) OrgTasks(ctx context.Context, a identity.Access, f Filter) ([]Task, error) {
	if err := a.May(identity.ReadTasks); err != nil {
		return nil, err
	}
	f.Org = a.Org()
	return s.Store.Tasks(ctx, f)
}

// OrgTask returns one task of the org's agents by our own id; for admins.
func (s *Tasks) OrgTask(ctx context.Context, a identity.Access, uid string) (Task, error) {
	return s.OrgTaskWith(ctx, a, uid, All)
}

// OrgTaskWith is OrgTask with as much of the task's content as is asked for.
func (s *Tasks) OrgTaskWith(ctx context.Context, a identity.Access, uid string, l Content) (Task, error) {
	if err := a.May(identity.ReadTasks); err != nil {
		return Task{}, err
	}
	if len(checkID("", uid)) > 0 {
		return Task{}, errs.ErrNotFound
	}
	return s.loadByUID(ctx, a.Org(), uid, l)
}

// OrgArtifact returns one artifact of a task of the org's agents, by its number in Task.Artifacts.
func (s *Tasks) OrgArtifact(ctx context.Context, a identity.Access, uid string, number int) (Artifact, error) {
	if err := a.May(identity.ReadTasks); err != nil {
		return Artifact{}, err
	}
	if len(checkID("", uid)) > 0 {
		return Artifact{}, errs.ErrNotFound
	}
	return s.artifact(ctx, a.Org(), uid, number)
}

// fold makes the task that a first change describes.
func fold(c Change) Task {
	t := c.Task
	for i := range c.Events {
		t.Apply(&c.Events[i])
	}
	return t
}
