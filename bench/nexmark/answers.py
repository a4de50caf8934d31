"""What the queries give: a record type for each, with the oracle's columns in the oracle's order.

Those with a key are rows of tables, of which a later one takes the place of an earlier one.
"""

from penstock import record


@record()
class Q0:
    auction: int
    bidder: int
    price: int
    ts: int
    extra: str


@record()
class Q1:
    auction: int
    bidder: int
    price_milli: int
    ts: int
    extra: str


@record()
class Q2:
    auction: int
    price: int


@record()
class Q3:
    name: str
    city: str
    state: str
    id: int


@record(key="category")
class Q4:
    category: int
    avg_final: float


@record()
class Q5:
    auction: int
    window_start: int
    num: int


@record(key="seller")
class Q6:
    seller: int
    avg_price: float


@record()
class Q7:
    auction: int
    bidder: int
    price: int
    ts: int
    window_start: int


@record()
class Q8:
    id: int
    name: str
    window_start: int


@record()
class Q9:
    id: int
    seller: int
    category: int
    bidder: int
    price: int
    bid_ts: int


@record()
class WinningBid:
    """A row of q9, and which of several bids at the same instant it is: q6 asks for the last."""

    id: int
    seller: int
    category: int
    bidder: int
    price: int
    bid_ts: int
    bid_seq: int


@record()
class Q10:
    """A bid in the lake; the oracle counts those of each day and minute."""

    dt: str
    hm: str
    auction: int
    bidder: int
    price: int
    ts: int
    extra: str


@record()
class Q11:
    bidder: int
    bid_count: int
    starttime: int
    endtime: int


@record(key=("bidder", "window_start"))
class Q12:
    """Bids in a window of the clock; the oracle knows their sum over all windows."""

    bidder: int
    window_start: int
    total: int


@record(key="key")
class Side:
    """A row of the side input of q13."""

    key: int
    value: str


@record()
class Q13:
    auction: int
    bidder: int
    price: int
    ts: int
    value: str


@record()
class Q14:
    auction: int
    bidder: int
    price_milli: int
    bid_time_type: str
    ts: int
    c_counts: int


@record(key="day")
class Q15:
    day: str
    total_bids: int
    rank1_bids: int
    rank2_bids: int
    rank3_bids: int
    total_bidders: int
    rank1_bidders: int
    rank2_bidders: int
    rank3_bidders: int
    total_auctions: int
    rank1_auctions: int
    rank2_auctions: int
    rank3_auctions: int


@record(key=("channel", "day"))
class Q16:
    channel: str
    day: str
    minute: str
    total_bids: int
    rank1_bids: int
    rank2_bids: int
    rank3_bids: int
    total_bidders: int
    rank1_bidders: int
    rank2_bidders: int
    rank3_bidders: int
    total_auctions: int
    rank1_auctions: int
    rank2_auctions: int
    rank3_auctions: int


@record(key=("auction", "day"))
class Q17:
    auction: int
    day: str
    total_bids: int
    rank1_bids: int
    rank2_bids: int
    rank3_bids: int
    min_price: int
    max_price: int
    avg_price: float
    sum_price: int


@record(key=("bidder", "auction"))
class Q18:
    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    ts: int


@record(key=("auction", "rank_number"))
class Q19:
    auction: int
    price: int
    rank_number: int


@record()
class Q20:
    auction: int
    bidder: int
    price: int
    ts: int
    seller: int
    category: int
    expires: int


@record()
class Q21:
    auction: int
    bidder: int
    price: int
    channel: str
    channel_id: str


@record()
class Q22:
    auction: int
    bidder: int
    price: int
    channel: str
    dir1: str
    dir2: str
    dir3: str


@record()
class Q23:
    bidder: int
    price: int
    seq: int
    name: str
    auction_id: int
