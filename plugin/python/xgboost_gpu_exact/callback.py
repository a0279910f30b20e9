# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""A callback of XGBoost's: what each round took, and a model that says who grew it.

    from xgboost_gpu_exact.callback import RunHistory

    history = RunHistory(sign=True)
    model = xgb.train(params, dtrain, 100, callbacks=[history])
    history.runs[-1].tree_ms  # of the last round's last tree
    model.attr("gpu_exact")  # JSON, which is saved with the model
"""

import json
import warnings
from collections.abc import Callable
from typing import Any

import xgboost as xgb

from . import LastRun, __version__, last_run, source_hash

#: The attribute of a booster that :class:`RunHistory` writes
ATTRIBUTE = "gpu_exact"


class RunHistory(xgb.callback.TrainingCallback):
    """Keep ``last_run()`` of each round.

    For ``xgb.train``, ``xgb.cv`` and the ``callbacks`` of scikit-learn's estimators. With ``xgb.cv`` a
    round's run is that of its last fold. Dask's workers have copies of it, which stay there.

    Parameters
    ----------
    report : Called after each round with the round's number, as XGBoost counts, and its run.
    sign : Whether the booster gets the attribute ``gpu_exact``: a list in JSON, of one record for each
        training that signed. ``save_model`` saves it, and ``Booster.attr`` reads it. A record has

        ``version``, ``build`` : of the plugin; ``build`` is ``source_hash()``
        ``xgboost`` : the release
        ``device`` : that grew the last tree; empty if there was none
        ``trees`` : that this training has grown
        ``gpu_trees``, ``cpu_trees`` : those that the plugin has grown, and those that XGBoost's own builder
            has grown in its place; null if nobody can tell, because other boosters trained meanwhile

    Attributes
    ----------
    runs : A ``LastRun`` of each round. It tells of the round's last tree: with several classes or
        parallel trees a round has more. Milliseconds and bytes.

    Raises
    ------
    TypeError
        When training begins, if a model of ``xgb.cv`` is to be signed: none is kept.
    """

    def __init__(
        self, report: Callable[[int, LastRun], object] | None = None, *, sign: bool = False
    ) -> None:
        super().__init__()
        self.runs: list[LastRun] = []
        self._report, self._sign = report, sign
        self._before, self._rounds, self._epoch = (0, 0), 0, 0

    def before_training(self, model: Any) -> Any:
        if self._sign and not isinstance(model, xgb.Booster):
            raise TypeError("sign is True, but xgb.cv keeps no model: leave sign out.")
        self.runs.clear()
        self._before, self._rounds = _grown(), 0
        return model

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        self._rounds, self._epoch = self._rounds + 1, epoch
        return False

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        self.runs.append(last_run())
        if self._report is not None:
            self._report(epoch, self.runs[-1])
        return False

    def after_training(self, model: Any) -> Any:
        if len(self.runs) < self._rounds:  # a callback before this one has ended training
            self.after_iteration(model, self._epoch, None)
        if self._sign:
            records = json.loads(model.attr(ATTRIBUTE) or "[]")
            model.set_attr(**{ATTRIBUTE: json.dumps([*records, self._record(model)])})
        return model

    def _record(self, model: xgb.Booster) -> dict[str, Any]:
        trees = self._rounds * _trees_a_round(model)
        gpu_trees, cpu_trees = (now - n for now, n in zip(_grown(), self._before, strict=True))
        told = gpu_trees + cpu_trees in (0, trees)
        if not told:
            warnings.warn(
                f"{gpu_trees + cpu_trees} trees grew in this process while {trees} of this booster did: "
                "its attribute does not say where. Train one booster at a time to sign it.",
                stacklevel=2,
            )
        return {
            "version": __version__,
            "build": source_hash(),
            "xgboost": xgb.__version__,
            "device": self.runs[-1].device if gpu_trees + cpu_trees else "",
            "trees": trees,
            "gpu_trees": gpu_trees if told else None,
            "cpu_trees": cpu_trees if told else None,
        }


def _grown() -> tuple[int, int]:
    """Trees of this process, by the plugin and by XGBoost's own builder in its place."""
    run = last_run()
    return run.gpu_trees, run.cpu_trees


def _trees_a_round(model: xgb.Booster) -> int:
    """Classes times parallel trees. Early stopping may have cut rounds off, so they are not counted."""
    booster = json.loads(model.save_config())["learner"]["gradient_booster"]
    param = booster.get("gbtree", booster).get("gbtree_model_param")  # of DART it lies one deeper
    rounds = model.num_boosted_rounds()
    return int(param["num_trees"]) // rounds if param and rounds else 0
