package rpcpool

// What docs/FAILOVER.md has under Numbers and nothing exported has.
const (
	FirstCooldown, MaxCooldown                                           = firstCooldown, maxCooldown
	PoolTimeout, IdleConnTimeout, MinRefetch                             = poolTimeout, idleConnTimeout, minRefetch
	MaxBatch, MaxBatchBytes, BatchesAtOnce, SinglesAtOnce, BatchPatience = maxBatch, maxBatchBytes, batchesAtOnce, singlesAtOnce, batchPatience

	DefaultExtra, KeptHedges                         = defaultExtra, keptHedge / oneHedge
	MinHedgeDelay, UnknownDelay, EnoughLatencies     = minHedgeDelay, unknownDelay, enoughLatencies
	MaxProxyWarning, HeadHolds                       = maxProxyWarning, headHolds
	PublishEvery, PublishTimeout                     = publishEvery, publishTimeout
	MaxPublished, MaxQueuedFacts, MaxKnownFacts      = maxPublished, maxQueuedFacts, maxKnownFacts
	FirstRejoin, LastRejoin, MaxFactText, DefaultLag = firstRejoin, lastRejoin, maxFactText, defaultEjectLag
)
