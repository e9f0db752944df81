"""Health: what is unusual now, as findings with a severity, and the verdict in one line. Pure: no I/O, no clock.

    found = findings(situation)
    verdict(found).text    # "Degraded: mail 30 × slower than usual, all workers busy"

`situation.py` is the input, `usual_values.py` what history says about this hour, `queue_rules.py`, `job_rules.py` and
`system_rules.py` the rules, `finding.py` the result, `verdict.py` the line. `rota.monitoring` reads the situation.
"""
