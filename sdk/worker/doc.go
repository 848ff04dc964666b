// Package worker runs the worker of a Parley agent: it claims the agent's tasks, calls a function
// for each, and reports the results.
//
// A complete agent:
//
//	cfg := worker.Config{URL: "http://127.0.0.1:8080", Agent: "scout", Key: os.Getenv("PARLEY_KEY")}
//	w, err := worker.New(cfg)
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
// # Handlers
//
// A handler owns its task until it returns. It ends the task with Complete, Reply, Fail, Reject or
// AskForInput; if it does not, returning nil completes the task without artifacts and returning an
// error fails it with the error's text. A panic fails the task too, and is logged.
//
// Before that, a handler may call Progress, and Artifact or AppendArtifact for results that the
// sender should see early. Further messages of the sender arrive on Turns. After AskForInput the
// handler returns; it is called again, maybe in another process, when the sender has sent the
// input, with the whole conversation in History.
//
// # Friction
//
// Call Friction each time something gets in the way, with the same fingerprint: the third report
// files a proposal with the collected evidence. The key needs svc:tasks:write for that.
//
// # When the context ends
//
// A worker holds a lease for each task, which this package keeps alive. The handler's context ends
// when there is no use in continuing, and context.Cause returns why: ErrCanceled, the sender
// canceled the task (noticed within two seconds); ErrLeaseLost, the server could not be reached for
// the length of the lease, and the task goes to another worker; ErrOverdue, the deadline of the task
// has passed; ErrStopping, this worker is stopping.
//
// When a worker is lost, its tasks go to another one, and a task that failed may be tried again, as
// its sender or its agent chose. So a handler must be able to run again for the same task: Attempt
// counts, and ID stays the same.
//
// # Traces
//
// If the sender sent a traceparent, or the server exports traces, Task.Trace has the W3C Trace Context
// that the task belongs to. The handler's context has it too, so that reports, and calls with
// Worker.Client, belong to the same trace. A handler with spans of its own starts them below
// Task.Trace, and passes a span on with client.WithTrace(ctx, …). The package needs no library for it.
//
// # Stopping
//
// When the context given to Run ends, the worker claims nothing more and lets handlers finish for
// the grace period. Then it ends their contexts and hands unfinished tasks back to the queue, which
// does not count as an attempt. Run returns nil.
//
// # Failures of the network
//
// Claims are repeated forever, and reports for as long as the lease lasts, with growing pauses;
// Retry-After is honoured. A permanent refusal (the key is wrong, the agent does not exist) ends
// Run with an *Error.
package worker
