"""Events of the Yahoo Streaming Benchmark, each a function of seed, partition and index.

Kept apart from the query, so that the processes that read do not load it.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.traffic import BLOCK, block_generator, gather

AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
EVENT_TYPES = ("view", "click", "purchase")
VIEW = EVENT_TYPES.index("view")

Ints = NDArray[np.int64]


class YsbEvents:
    """Payload generator: a user sees, clicks or buys through an advertisement.

    >>> events = YsbEvents(seed=1, campaigns=2, ads_per_campaign=3)
    >>> events.columns(0, np.array([0, 1]))["event_type"].to_pylist()
    ['view', 'purchase']
    >>> len(events.ads), events.campaign_of.tolist()
    (6, [0, 0, 0, 1, 1, 1])
    """

    schema = (
        "user_id string, page_id string, ad_id string, ad_type string, event_type string, "
        "ip_address string"
    )
    event_time = "event_time"

    def __init__(
        self,
        *,
        seed: int,
        campaigns: int = 100,
        ads_per_campaign: int = 10,
        users: int = 100,
        pages: int = 100,
    ) -> None:
        self.seed = seed
        self.campaigns = _identifiers(seed, "campaigns", campaigns)
        self.ads = _identifiers(seed, "ads", campaigns * ads_per_campaign)
        self.campaign_of = np.repeat(np.arange(campaigns), ads_per_campaign)  # by ad
        self._kinds = (len(self.ads), len(EVENT_TYPES))
        self._pools = (  # of the columns that no query looks at
            ("user_id", pa.array(_identifiers(seed, "users", users))),
            ("page_id", pa.array(_identifiers(seed, "pages", pages))),
            ("ad_type", pa.array(AD_TYPES)),
            ("ip_address", pa.array([f"10.0.{n // 256}.{n % 256}" for n in range(1024)])),
        )
        self._ad_pool = pa.array(self.ads)
        self._event_type_pool = pa.array(EVENT_TYPES)

    def ads_and_types(self, partition: int, index: Ints) -> tuple[Ints, Ints]:
        """Return numbers of the ad and of the event type of some events of one partition."""
        ads, types = self._choices(partition, index, "ysb", self._kinds)
        return ads, types

    def columns(self, partition: int, index: Ints) -> dict[str, pa.Array]:
        """Return the columns of ``schema``."""
        ads, types = self.ads_and_types(partition, index)
        sizes = tuple(len(pool) for _, pool in self._pools)
        others = self._choices(partition, index, "ysb-others", sizes)
        named = zip(self._pools, others, strict=True)
        columns = {name: pool.take(pa.array(chosen)) for (name, pool), chosen in named}
        columns["ad_id"] = self._ad_pool.take(pa.array(ads))
        columns["event_type"] = self._event_type_pool.take(pa.array(types))
        return columns

    def _choices(self, partition: int, index: Ints, purpose: str, kinds: tuple[int, ...]) -> Ints:
        """Return one number below each of ``kinds`` for every event; a row for each kind."""

        def draw(block: int) -> NDArray[np.uint32]:
            rng = block_generator(self.seed, partition, block, purpose)
            return rng.integers(0, 2**32, size=(len(kinds), BLOCK), dtype=np.uint32)

        words = gather(index, draw).astype(np.int64)
        chosen: Ints = (words * np.array(kinds).reshape(-1, 1)) >> 32
        return chosen


def _identifiers(seed: int, purpose: str, number: int) -> list[str]:
    """Return seeded strings that look like UUIDs."""
    digits = block_generator(seed, 0, 0, purpose).bytes(16 * number).hex()
    texts = (digits[n : n + 32] for n in range(0, len(digits), 32))
    return [f"{t[:8]}-{t[8:12]}-{t[12:16]}-{t[16:20]}-{t[20:]}" for t in texts]
