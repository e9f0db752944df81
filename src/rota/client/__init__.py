"""The public API of Rota: tasks, jobs, queues, workflows, schedules."""
