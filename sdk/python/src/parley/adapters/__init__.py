"""Adapters: do the tasks of an agent with a framework for agents.

Each module needs its framework, which is an extra of the package, and has a function that returns a
handler:

    from parley import Worker
    from parley.adapters.langgraph import graph_handler

    worker = Worker("scout")
    worker.handler(graph_handler(graph))
    worker.run()

| module          | extra                       | function           | runs                    |
|-----------------|-----------------------------|--------------------|-------------------------|
| `a2a`           | `parley-sdk[a2a]`           | `executor_handler` | an `AgentExecutor`      |
| `adk`           | `parley-sdk[adk]`           | `agent_handler`    | an agent of Google ADK  |
| `langgraph`     | `parley-sdk[langgraph]`     | `graph_handler`    | a compiled graph        |
| `openai_agents` | `parley-sdk[openai-agents]` | `agent_handler`    | an agent of the SDK     |
| `crewai`        | `parley-sdk[crewai]`        | `crew_handler`     | a crew                  |

The text of the model becomes an artifact that grows. Tasks with the same sender and context id are
one conversation. When the sender cancels a task, the framework gets `asyncio.CancelledError`.
"""
