"""The text that Prometheus scrapes."""

from __future__ import annotations

from rota.core.prometheus_text import Family, Histogram, histogram_samples, render


def test_a_family_is_its_help_its_type_and_its_samples() -> None:
    jobs = Family("rota_queue_jobs", "gauge", "Runs of a queue.")
    jobs.add(3, queue="mail", state="pending")
    jobs.add(0.25)

    assert render([jobs]) == (
        "# HELP rota_queue_jobs Runs of a queue.\n"
        "# TYPE rota_queue_jobs gauge\n"
        'rota_queue_jobs{queue="mail",state="pending"} 3\n'
        "rota_queue_jobs 0.25\n"
    )


def test_odd_characters_in_labels_are_escaped() -> None:
    tasks = Family("rota_tasks", "gauge", 'says "no"\nand \\')
    tasks.add(1, task='a"b\\c\nd')

    assert render([tasks]).splitlines() == [
        r'# HELP rota_tasks says "no"\nand \\',
        "# TYPE rota_tasks gauge",
        r'rota_tasks{task="a\"b\\c\nd"} 1',
    ]


def test_a_family_without_samples_is_left_out() -> None:
    assert render([Family("rota_nothing", "gauge", "Nothing.")]) == ""


def test_a_histogram_counts_each_value_in_every_bucket_that_it_fits_into() -> None:
    runs = Histogram("rota_run_seconds", "Runs.", bounds=(0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 7.0):
        runs.observe(seconds, queue="mail")

    assert render([runs.family()]).splitlines()[2:] == [
        'rota_run_seconds_bucket{queue="mail",le="0.1"} 2',
        'rota_run_seconds_bucket{queue="mail",le="1"} 3',
        'rota_run_seconds_bucket{queue="mail",le="+Inf"} 4',
        'rota_run_seconds_sum{queue="mail"} 7.65',
        'rota_run_seconds_count{queue="mail"} 4',
    ]


def test_counts_from_elsewhere_become_the_same_lines() -> None:
    samples = histogram_samples({"queue": "mail"}, (0.1, 1.0), [2, 1, 1], 7.65)

    assert [(sample.suffix, sample.value) for sample in samples] == [
        ("_bucket", 2),
        ("_bucket", 3),
        ("_bucket", 4),
        ("_sum", 7.65),
        ("_count", 4),
    ]
