// Package worker makes a program the worker of a Parley agent: it claims the
// agent's tasks, runs a function for each, and reports what came of it.
//
// A complete agent:
//
//	w, err := worker.New(worker.Config{URL: "http://127.0.0.1:8080", Agent: "scout", Key: os.Getenv("PARLEY_KEY")})
//	if err != nil {
//		return err
//	}
//	err = w.Run(ctx, func(ctx context.Context, t *worker.Task) error {
//		return t.Complete(ctx, worker.Text("You said: "+t.Text()))
//	})
//
// The key needs the scope svc:a2a:serve and belongs to the agent itself, or to
// another principal of its org with the scope agent:<id>.
//
// # What a handler owes
//
// A task is at the handler's disposal until the handler returns. It ends the task
// with Complete, Reply, Fail, Reject or AskForInput; if it does not, returning nil
// completes the task without artifacts and returning an error fails it with the
// error's text. A panic fails the task, too, and is logged.
//
// On the way it may call Progress, and Artifact or AppendArtifact for results that
// the sender should see before the end. What the sender says meanwhile arrives on
// Turns. After AskForInput the handler returns; it is called anew, maybe in another
// process, when the sender has answered, with the whole conversation in History.
//
// # What gets in the way
//
// Friction reports it, each time with the same fingerprint: the third report files a
// proposal with the collected evidence. The key needs svc:tasks:write for that.
//
// # When the context ends
//
// A worker holds a task by a lease that this package keeps alive. The handler's
// context ends when there is no sense in going on, and context.Cause says why:
// ErrCanceled, the sender canceled the task (known within two seconds);
// ErrLeaseLost, the server could not be reached for the length of the lease, and
// the task is or will be somebody else's; ErrStopping, this worker is stopping.
//
// A task whose worker got lost is given to another, so a handler must bear to be
// run again for the same task: Attempt counts, and ID stays the same.
//
// # Stopping
//
// When the context given to Run ends, the worker claims nothing more, lets
// handlers finish for the grace period, then ends their contexts, and hands what is
// not finished back to the queue, where it costs no attempt. Run returns nil then.
//
// # Failures of the network
//
// Claims are repeated for ever, reports for as long as the lease lasts, with
// growing pauses; Retry-After is honoured. A refusal that no repetition can change
// (the key is wrong, the agent does not exist) ends Run with an *Error.
package worker
