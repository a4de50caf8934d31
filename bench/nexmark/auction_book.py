"""Which bid wins each auction: what is open, the best bid so far, and bids that came too early.

Spark cannot say this natively: which bids count is known only with the auction, whose end is a
field of it, and the best of them only when it has ended. A book is plain data and knows no Spark.
"""

from collections.abc import Iterator
from typing import NamedTuple, Self

import msgspec

__all__ = ["AuctionBook", "Offer", "Sale", "Winner"]


class Sale(NamedTuple):
    """An auction, from when to when it takes bids; both instants included."""

    seller: int
    category: int
    opened: int
    expires: int


class Offer(NamedTuple):
    """A bid; of two the larger one is better: the higher, then the earlier."""

    price: int
    minus_ts: int
    minus_seq: int
    bidder: int


class Winner(NamedTuple):
    """An auction that is over, and the bid that won it."""

    id: int
    seller: int
    category: int
    bidder: int
    price: int
    bid_ts: int
    bid_seq: int


class _Pages(msgspec.Struct, array_like=True):
    sales: dict[int, Sale] = {}
    best: dict[int, Offer] = {}
    early: dict[int, list[Offer]] = {}


_DECODER = msgspec.msgpack.Decoder(_Pages)


class AuctionBook:
    """The open auctions of a part of the site. To be told of an event twice changes nothing."""

    def __init__(self, pages: _Pages | None = None) -> None:
        self._pages = pages or _Pages()

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return the book that was packed."""
        return cls(_DECODER.decode(packed))

    def pack(self) -> bytes:
        """Return the book as bytes."""
        return msgspec.msgpack.encode(self._pages)

    @property
    def next_end(self) -> int | None:
        """When the next auction ends; None if none is open."""
        return min((sale.expires for sale in self._pages.sales.values()), default=None)

    def open(self, auction: int, sale: Sale) -> None:
        """Take in an auction, and the bids that came before it."""
        self._pages.sales[auction] = sale
        for offer in self._pages.early.pop(auction, ()):
            self._consider(auction, sale, offer)

    def bid(self, auction: int, offer: Offer) -> None:
        """Take in a bid, whether or not its auction is known."""
        sale = self._pages.sales.get(auction)
        if sale is None:
            self._pages.early.setdefault(auction, []).append(offer)
        else:
            self._consider(auction, sale, offer)

    def close(self, watermark: int) -> Iterator[Winner]:
        """Yield the winners of the auctions that are over, and forget these auctions.

        Nothing will come that happened at the watermark or before. So a bid of that time whose
        auction is not known has none, or one that opened after it.
        """
        pages = self._pages
        over = [auction for auction, sale in pages.sales.items() if sale.expires <= watermark]
        for auction in over:
            sale, best = pages.sales.pop(auction), pages.best.pop(auction, None)
            if best is not None:
                yield _winner(auction, sale, best)
        for auction, offers in list(pages.early.items()):
            pages.early[auction] = [each for each in offers if -each.minus_ts > watermark]
            if not pages.early[auction]:
                del pages.early[auction]

    def _consider(self, auction: int, sale: Sale, offer: Offer) -> None:
        if sale.opened <= -offer.minus_ts <= sale.expires:
            best = self._pages.best.get(auction)
            if best is None or offer > best:
                self._pages.best[auction] = offer


def _winner(auction: int, sale: Sale, best: Offer) -> Winner:
    return Winner(
        id=auction,
        seller=sale.seller,
        category=sale.category,
        bidder=best.bidder,
        price=best.price,
        bid_ts=-best.minus_ts,
        bid_seq=-best.minus_seq,
    )
