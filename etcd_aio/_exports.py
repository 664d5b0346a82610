"""The names that packages import at their first use, by the modules that have them; see `exports.py`.

Made by `python -m release.exports --write`: do not edit.
"""

EXPORTS = {
    "etcd_aio": {
        "etcd_aio.balancer": "Candidate",
        "etcd_aio.base.call_options": "RetryMode Timeout UNSET",
        "etcd_aio.base.key_space": "KeySpace",
        "etcd_aio.calls": "Writer",
        "etcd_aio.client": "Client",
        "etcd_aio.config": "TLS",
        "etcd_aio.error_handler": "RetryPolicy RetryThrottling",
        "etcd_aio.errors": (
            "ClientClosedError ConfigError ConnectionLostError EtcdError EtcdTimeoutError InvalidRequestError "
            "LeadershipLostError LeaseLostError LockLostError LockTimeoutError NoAvailableEndpointsError "
            "OutcomeUnknownError ServerError "
        ),
        "etcd_aio.kv": "Compare Key Op Scan Txn op",
        "etcd_aio.lease": "Lease Leases",
        "etcd_aio.store": "Store",
        "etcd_aio.types": (
            "CompactResult DeleteResult Event EventType Header KeyLike KeyRange KeyValue LeaseLike OnCompaction "
            "Operation PutResult RangeResult SortBy SortOrder TxnResult ValueLike WatchBatch WatchFilter "
        ),
        "etcd_aio.watch": "WatchStatistics Watcher",
    },
    "etcd_aio.admin": {
        "etcd_aio.admin.auth": "Auth",
        "etcd_aio.admin.cluster": "Cluster",
        "etcd_aio.admin.maintenance": "Maintenance",
        "etcd_aio.admin.snapshot": "Snapshot",
        "etcd_aio.admin.versions": "Versions",
        "etcd_aio.types": (
            "ActiveAlarm Alarm AlarmResult AuthResult AuthStatus AuthenticateResult DefragmentResult "
            "DowngradeAction DowngradeInfo DowngradeResult EndpointVersions HashKVResult HashResult HealthCheck "
            "KeyPermission Member MemberAddResult MemberHealth MemberListResult MemberPromoteResult "
            "MemberRemoveResult MemberUpdateResult MoveLeaderResult Permission Role RoleListResult SavedSnapshot "
            "StatusResult User UserListResult "
        ),
    },
    "etcd_aio.arguments": {
        "etcd_aio.arguments.blocks": "cancels_block checked_margin",
        "etcd_aio.arguments.checks": (
            "KeyLike LeaseLike MIN_INT64 ValueLike check_text encode_key finite_seconds flag is_encodable "
            "lease_id one_of parse_word to_bytes whole_number "
        ),
        "etcd_aio.arguments.functions": "check_async_function check_awaitable check_blocking_function",
        "etcd_aio.arguments.host_port": "join_host_port split_host_port",
    },
    "etcd_aio.backend": {
        "etcd_aio.kv": "ChunkReader",
        "etcd_aio.watch": "WatchOptions",
    },
    "etcd_aio.balancer": {
        "etcd_aio.balancer.balancer": "Balancer SingleEndpointView",
        "etcd_aio.balancer.cluster_id": "ClusterIdentity",
        "etcd_aio.balancer.connection_record": "SubConnectionStream",
        "etcd_aio.balancer.endpoint": (
            "DnsName Endpoint ProxyFor Security Source parse_endpoint parse_endpoints parse_sources "
        ),
        "etcd_aio.balancer.health_verdicts": "refused_health",
        "etcd_aio.balancer.picker": "Candidate Choice POLICIES PolicyName",
        "etcd_aio.balancer.store_doubts": "StoreDoubts",
        "etcd_aio.balancer.sub_connection": "SubConnection",
        "etcd_aio.transport": "Collector Connection Metadata Stream",
    },
    "etcd_aio.base": {
        "etcd_aio.base.aio": (
            "ATTEMPT_SECONDS Latch TaskCanceller Waiters check_loop repeat_unanswered resolve "
            "start_background_task start_task start_timer start_timer_at wait_until wake "
        ),
        "etcd_aio.base.backoff": "Backoff",
        "etcd_aio.base.blocking": "Blocking check_asyncio",
        "etcd_aio.base.call_options": "RetryMode Timeout UNSET",
        "etcd_aio.base.closing": "CANCELLED_SECONDS TwoPartClose Unwinding",
        "etcd_aio.base.contention": "Contention REMEMBERED",
        "etcd_aio.base.deadline": "NEVER check_timeout deadline_after time_left",
        "etcd_aio.base.durations": "go_duration",
        "etcd_aio.base.hand_over": "HandOver",
        "etcd_aio.base.key_space": "KeySpace key_space_of",
        "etcd_aio.base.logs": "Log log_for",
        "etcd_aio.base.not_awaitable": "AsyncBlock NotAwaitable",
        "etcd_aio.base.pauses": "PATIENT Pauses SOON STEADY",
        "etcd_aio.base.reprs": "when_constructed",
        "etcd_aio.base.suspension": "now",
        "etcd_aio.base.threads": "in_thread",
        "etcd_aio.base.unexpected": "as_etcd_error",
        "etcd_aio.base.user": "User current_user user_name",
    },
    "etcd_aio.cache": {
        "etcd_aio.cache.cache": "Cache DEFAULT_MAX_OUTAGE DEFAULT_MAX_PENDING",
        "etcd_aio.cache.changes": "CacheBatches CacheChanges KeySetChanges",
        "etcd_aio.cache.derived": "Derived DerivedChanges",
        "etcd_aio.cache.results": "CacheStatistics",
        "etcd_aio.cache.state": "CacheState",
    },
    "etcd_aio.calls": {
        "etcd_aio.calls.keys": "KeyCalls",
        "etcd_aio.calls.store_calls": "StoreCalls check_store",
        "etcd_aio.calls.writer": "Writer is_exact writer_for",
    },
    "etcd_aio.codec": {
        "etcd_aio.codec.compiled": "decode encode header_of writers",
        "etcd_aio.codec.decodable": "Decodable",
        "etcd_aio.codec.encoder": "argument_name",
        "etcd_aio.codec.fields": "Field fields_of",
        "etcd_aio.codec.generated.writers": (
            "write_Compare write_DeleteRangeRequest write_PutRequest write_RangeRequest write_RequestOp "
            "write_StatusRequest write_TxnRequest write_WatchCreateRequest write_WatchRequest "
        ),
        "etcd_aio.codec.incremental": "IncrementalDecoder",
        "etcd_aio.codec.speedups": "BACKEND",
        "etcd_aio.codec.targets": "message_class_of",
        "etcd_aio.codec.watch_replies": "WatchReplyDecoder leading_watch_id",
        "etcd_aio.codec.wire": "MAX_DEPTH",
    },
    "etcd_aio.compat": {
        "etcd_aio.compat.clients": "CLIENTS install",
    },
    "etcd_aio.compat.aetcd": {
        "etcd_aio.compat.aetcd": "exceptions leases locks members rpc rtypes transactions utils watcher",
        "etcd_aio.compat.aetcd.client": "Alarm Client Status",
        "etcd_aio.compat.aetcd.exceptions": (
            "ClientError ConnectionFailedError ConnectionTimeoutError DuplicateLeaseError InternalError "
            "InvalidArgumentError PreconditionFailedError RevisionCompactedError UnauthenticatedError "
            "WatchTimeoutError "
        ),
        "etcd_aio.compat.aetcd.leases": "Lease",
        "etcd_aio.compat.aetcd.locks": "Lock",
        "etcd_aio.compat.aetcd.members": "Member",
        "etcd_aio.compat.aetcd.rtypes": (
            "Delete DeleteRange Event EventKind Get GetRange KeyValue Put ResponseHeader Watch "
        ),
        "etcd_aio.compat.aetcd.transactions": "Transactions",
        "etcd_aio.compat.aetcd.watcher": "Watcher WatcherCallback",
    },
    "etcd_aio.compat.etcd3gw": {
        "etcd_aio.compat.etcd3gw": "exceptions lease lock types utils watch",
        "etcd_aio.compat.etcd3gw.client": "Etcd3Client client",
        "etcd_aio.compat.etcd3gw.lease": "Lease",
        "etcd_aio.compat.etcd3gw.lock": "Lock",
    },
    "etcd_aio.concurrency": {
        "etcd_aio.concurrency.election": "Election Leaders",
        "etcd_aio.concurrency.holding": "Holding",
        "etcd_aio.concurrency.leaders": "Leader",
        "etcd_aio.concurrency.leadership": "Leadership",
        "etcd_aio.concurrency.lock": "Contender Lock",
        "etcd_aio.concurrency.options": "HoldOptions",
        "etcd_aio.concurrency.own_key": "OwnKey",
        "etcd_aio.concurrency.rwlock": "RWLock ReadLock WriteLock",
        "etcd_aio.concurrency.semaphore": "Semaphore",
        "etcd_aio.concurrency.session": "Session",
        "etcd_aio.lease": "OnLost",
    },
    "etcd_aio.config": {
        "etcd_aio.config.certificates": "CertificateFiles",
        "etcd_aio.config.endpoints": "sources_from srv_resolver_from with_resolvers",
        "etcd_aio.config.environ": "read_environment",
        "etcd_aio.config.guard": "guard_options",
        "etcd_aio.config.options": "ClientOptions TEXT_OPTIONS check_options read_option",
        "etcd_aio.config.proxies": "proxies_from",
        "etcd_aio.config.security": "EndpointSecurity",
        "etcd_aio.config.settings": "Settings TLSFiles client_options",
        "etcd_aio.config.text": "PREFIX PROXY RECONNECT_VARIABLE read_flag",
        "etcd_aio.config.tls": "TLS is_pem",
        "etcd_aio.config.url": "parse_url",
    },
    "etcd_aio.discovery": {
        "etcd_aio.discovery.discovery": "Discovery",
        "etcd_aio.discovery.member_urls": "Advertised advertised_endpoints",
        "etcd_aio.discovery.name_resolver": "NameResolver",
        "etcd_aio.discovery.resolver": "Resolution Resolver",
        "etcd_aio.discovery.srv": "SrvResolver require_dnspython",
    },
    "etcd_aio.error_handler": {
        "etcd_aio.error_handler.credentials": "Credentials TokenFunction credentials_from",
        "etcd_aio.error_handler.invoker": "Invoker",
        "etcd_aio.error_handler.lifetime": "Lifetime",
        "etcd_aio.error_handler.message_loading": "load_messages",
        "etcd_aio.error_handler.retry_policy": "RetryPolicy RetryThrottling",
        "etcd_aio.error_handler.stream_handler": "StreamHandler",
        "etcd_aio.error_handler.stream_supervisor": "StreamSupervisor",
        "etcd_aio.error_handler.streamed_reply": "StreamedReply",
    },
    "etcd_aio.errors": {
        "etcd_aio.errors.attempt": (
            "Attempt AttemptFailure Delivery LocalReason RetryHint StatusCode printable sanitize "
        ),
        "etcd_aio.errors.auth": (
            "AuthNotEnabledError AuthOldRevisionError AuthenticationFailedError InvalidAuthManagementError "
            "InvalidTokenError PermissionNotGivenError PermissionNotGrantedError RoleAlreadyExistsError "
            "RoleEmptyError RoleNotFoundError RoleNotGrantedError RootRoleNotExistError RootUserNotExistError "
            "UserAlreadyExistsError UserEmptyError UserNotFoundError "
        ),
        "etcd_aio.errors.availability": (
            "CorruptError LeaderChangedError NoLeaderError NotCapableError NotPrimaryLessorError "
            "NotSupportedForLearnerError ProposalDroppedError RequestTimedOutError ServerStoppedError "
            "TimeoutDueToConnectionLostError TimeoutDueToLeaderFailError TimeoutLeaderTransferError "
            "TimeoutWaitAppliedIndexError UnhealthyClusterError "
        ),
        "etcd_aio.errors.base": (
            "BlockingInLoopError ClientClosedError ClientUsageError ClusterChangedError ConfigError ConnectError "
            "ConnectionLostError DiscoveryError EtcdError EtcdTimeoutError ForkedError InvalidRequestError "
            "LeaseExpiredError LeaseLostError MalformedReplyError NoAvailableEndpointsError OldClusterError "
            "ProxyAuthenticationError ProxyError ReplyTooLargeError SnapshotChecksumError StoreRolledBackError "
            "TLSError TokenUnavailableError TransportError UnknownEndpointError WrongLoopError with_history "
        ),
        "etcd_aio.errors.cache": "CacheError CacheRangeError CacheTimeoutError",
        "etcd_aio.errors.cluster": (
            "BadLeaderTransfereeError ClusterIDMismatchError ClusterVersionUnavailableError "
            "DowngradeInProcessError InvalidDowngradeTargetVersionError LearnerNotReadyError MemberBadURLsError "
            "MemberExistsError MemberNotEnoughStartedError MemberNotFoundError MemberNotLearnerError "
            "NoInflightDowngradeError NotRaftLeaderError PeerURLExistsError TooManyLearnersError "
            "WrongDowngradeVersionFormatError "
        ),
        "etcd_aio.errors.concurrency": (
            "ElectionError ElectionTimeoutError LeadershipLostError LockError LockLostError LockTimeoutError "
            "NotHeldError NotLeaderError "
        ),
        "etcd_aio.errors.families": (
            "AbortedError AlreadyExistsError AuthError DataLossError DowngradeError FailedPreconditionError "
            "InternalServerError InvalidArgumentError LeaseError MembershipError NotFoundError "
            "NotSupportedByServerError OutOfRangeError PermissionDeniedError ResourceExhaustedError "
            "ServerCancelledError ServerDeadlineExceededError ServerError UnauthenticatedError UnavailableError "
            "UnknownServerError WatchError "
        ),
        "etcd_aio.errors.mirror": "MirrorConflictError MirrorError",
        "etcd_aio.errors.naming": "NamingError NoServiceEndpointError ServiceConflictError",
        "etcd_aio.errors.offline": "DatabaseFileError DatabaseFileInUseError",
        "etcd_aio.errors.once": "OutcomeUnknownError ResultLostError",
        "etcd_aio.errors.queues": "ItemInDoubtError JobLostError QueueError QueueTimeoutError",
        "etcd_aio.errors.recipes": (
            "BarrierError BarrierTimeoutError CounterError CounterLimitError EmptyGroupError GroupError "
            "MemberConflictError ScheduleError TooManyParticipantsError TxnConflictError "
        ),
        "etcd_aio.errors.requests": (
            "CompactedError DuplicateKeyError DuplicateWatchIDError EmptyKeyError EmptyWatcherRangeError "
            "FutureRevisionError InvalidClientAPIVersionError InvalidSortOptionError KeyNotFoundError "
            "LeaseExistsError LeaseNotFoundError LeaseProvidedError LeaseTTLTooLargeError NoSpaceError "
            "RequestCancelledError RequestDeadlineExceededError RequestTooLargeError TooManyOpsError "
            "TooManyRequestsError ValueProvidedError WatchCancelledError "
        ),
        "etcd_aio.errors.server_error_table": "server_error",
    },
    "etcd_aio.kubernetes": {
        "etcd_aio.kubernetes.values": "StoredObject decode_value",
    },
    "etcd_aio.kv": {
        "etcd_aio.kv.compare": "Compare Key",
        "etcd_aio.kv.limits": "DEFAULT_PAGE_SIZE",
        "etcd_aio.kv.op": "checked_put",
        "etcd_aio.kv.operations": "DeleteOp GetOp KVOperation Op PutOp RangeOp TxnOp",
        "etcd_aio.kv.scan": "ChunkReader RangeStreamReader ReadPage Scan ScanPages",
        "etcd_aio.kv.txn": "Txn",
        "etcd_aio.kv.update": "Update",
    },
    "etcd_aio.lease": {
        "etcd_aio.lease.calls": "Leases",
        "etcd_aio.lease.guard": "Guard",
        "etcd_aio.lease.keeper": "LeaseKeeper MakeGuardClient",
        "etcd_aio.lease.kept_lease": "KeptLease OnDoubt OnEnd",
        "etcd_aio.lease.lease": "Lease LeaseGuard OnLost",
        "etcd_aio.lease.loans": "LeaseSource Loan OnLoss",
        "etcd_aio.lease.pool": "LeasePool",
        "etcd_aio.types": (
            "LeaseGrantResult LeaseKeepAliveResult LeaseListResult LeaseRevokeResult LeaseStatus "
            "LeaseTimeToLiveResult "
        ),
    },
    "etcd_aio.mirror": {
        "etcd_aio.mirror.checkpoint": "Checkpoint",
        "etcd_aio.mirror.follow": "Follow MirrorBatch follow",
        "etcd_aio.mirror.mirror": "Mirror MirrorStatistics",
    },
    "etcd_aio.observing": {
        "etcd_aio.observing.defaults": "add_default remove_default with_defaults",
        "etcd_aio.observing.group": "ObservedCall ObserverGroup",
        "etcd_aio.observing.observer": "CallObserver ObservedClient Observer",
        "etcd_aio.observing.records": (
            "AttemptEnded CallOutcome CallStarted EndpointChange LeaseChange LeaseEvent LoginEnded StreamChange "
            "StreamEvent WatchAdvance "
        ),
        "etcd_aio.types": "ConnectivityState EndpointStatistics StreamStatistics",
    },
    "etcd_aio.offline": {
        "etcd_aio.offline.status": "read_snapshot_status snapshot_status",
        "etcd_aio.types": "SnapshotStatus",
    },
    "etcd_aio.once": {
        "etcd_aio.once.once": "DEFAULT_PREFIX DEFAULT_SLOTS DEFAULT_TTL DEFAULT_WINDOW ExactlyOnce",
        "etcd_aio.once.results": "OnceStatistics Outcome WriteResult",
        "etcd_aio.types": "ReplayedDeleteResult ReplayedPutResult ReplayedTxnResult",
    },
    "etcd_aio.recipes": {
        "etcd_aio.recipes.barrier.barrier": "Barrier",
        "etcd_aio.recipes.barrier.double_barrier": "DoubleBarrier",
        "etcd_aio.recipes.counter.counter": "Counter",
        "etcd_aio.recipes.counter.ids": "DEFAULT_BLOCK IdAllocator",
        "etcd_aio.recipes.group.group": "DEFAULT_TTL Group GroupCache Membership",
        "etcd_aio.recipes.group.hash_ring": "DEFAULT_REPLICAS HashRing",
        "etcd_aio.recipes.group.members": "GroupMember GroupView",
        "etcd_aio.recipes.group.ring": "Ring",
        "etcd_aio.recipes.kubernetes": "Found Kubernetes ListPage OptimisticResult",
        "etcd_aio.recipes.queue.priority_queue": "PriorityQueue",
        "etcd_aio.recipes.queue.queue": "Queue",
        "etcd_aio.recipes.queue.taking": "Item",
        "etcd_aio.recipes.schedule.runs": "Tick Work",
        "etcd_aio.recipes.schedule.schedule": "Schedule",
        "etcd_aio.recipes.schedule.ticks": "CatchUp NextTick",
        "etcd_aio.recipes.stm.isolation": "Isolation",
        "etcd_aio.recipes.stm.stm": "DEFAULT_MAX_ATTEMPTS StmCall StmResult",
        "etcd_aio.recipes.stm.transaction": "Transaction",
        "etcd_aio.recipes.work_queue.job": "Job",
        "etcd_aio.recipes.work_queue.work_queue": "DeadJob WorkQueue",
        "etcd_aio.recipes.work_queue.worker": "Worker",
    },
    "etcd_aio.services": {
        "etcd_aio.services": "naming",
        "etcd_aio.services.endpoint_json": "JSONValue ServiceEndpoint",
        "etcd_aio.services.endpoints": "Choice Endpoints PickPolicy",
        "etcd_aio.services.kept_entry": "KeptEntry OnConflict",
        "etcd_aio.services.last_list": "ServiceChange",
        "etcd_aio.services.naming": "NewEndpoint",
        "etcd_aio.services.registration": "Registration",
    },
    "etcd_aio.sync": {
        "etcd_aio.sync.calls.writer": "Writer",
        "etcd_aio.sync.client": "Client",
        "etcd_aio.sync.kv.scan": "Scan",
        "etcd_aio.sync.kv.txn": "Txn",
        "etcd_aio.sync.lease.calls": "Leases",
        "etcd_aio.sync.lease.lease": "Lease",
        "etcd_aio.sync.store": "Store",
        "etcd_aio.sync.watch.watcher": "Watcher",
    },
    "etcd_aio.sync.admin": {
        "etcd_aio.sync.admin.auth": "Auth",
        "etcd_aio.sync.admin.cluster": "Cluster",
        "etcd_aio.sync.admin.maintenance": "Maintenance",
        "etcd_aio.sync.admin.snapshot": "Snapshot",
    },
    "etcd_aio.sync.cache": {
        "etcd_aio.sync.cache.cache": "Cache",
        "etcd_aio.sync.cache.changes": "CacheBatches CacheChanges KeySetChanges",
        "etcd_aio.sync.cache.derived": "Derived DerivedChanges",
    },
    "etcd_aio.sync.calls": {
        "etcd_aio.sync.calls.keys": "KeyCalls",
        "etcd_aio.sync.calls.store_calls": "StoreCalls",
        "etcd_aio.sync.calls.writer": "Writer",
    },
    "etcd_aio.sync.concurrency": {
        "etcd_aio.sync.concurrency.election": "Election Leaders",
        "etcd_aio.sync.concurrency.leadership": "Leadership",
        "etcd_aio.sync.concurrency.lock": "Lock",
        "etcd_aio.sync.concurrency.rwlock": "RWLock ReadLock WriteLock",
        "etcd_aio.sync.concurrency.semaphore": "Semaphore",
        "etcd_aio.sync.concurrency.session": "Session",
    },
    "etcd_aio.sync.fake": {
        "etcd_aio.sync.fake.fake_etcd": "FakeEtcd",
    },
    "etcd_aio.sync.lease": {
        "etcd_aio.sync.lease.calls": "Leases",
        "etcd_aio.sync.lease.lease": "Lease",
    },
    "etcd_aio.sync.mirror": {
        "etcd_aio.sync.mirror.follow": "Follow follow",
        "etcd_aio.sync.mirror.mirror": "Mirror",
    },
    "etcd_aio.sync.once": {
        "etcd_aio.sync.once.once": "ExactlyOnce",
    },
    "etcd_aio.sync.recipes": {
        "etcd_aio.sync.recipes.barrier.barrier": "Barrier",
        "etcd_aio.sync.recipes.barrier.double_barrier": "DoubleBarrier",
        "etcd_aio.sync.recipes.counter.counter": "Counter",
        "etcd_aio.sync.recipes.counter.ids": "IdAllocator",
        "etcd_aio.sync.recipes.group.group": "Group GroupCache Membership",
        "etcd_aio.sync.recipes.group.ring": "Ring",
        "etcd_aio.sync.recipes.kubernetes": "Kubernetes",
        "etcd_aio.sync.recipes.queue.priority_queue": "PriorityQueue",
        "etcd_aio.sync.recipes.queue.queue": "Queue",
        "etcd_aio.sync.recipes.schedule.schedule": "Schedule",
        "etcd_aio.sync.recipes.stm.transaction": "Transaction",
        "etcd_aio.sync.recipes.work_queue.job": "Job",
        "etcd_aio.sync.recipes.work_queue.work_queue": "WorkQueue",
        "etcd_aio.sync.recipes.work_queue.worker": "Worker",
    },
    "etcd_aio.sync.services": {
        "etcd_aio.sync.services": "naming",
        "etcd_aio.sync.services.endpoints": "Endpoints",
        "etcd_aio.sync.services.registration": "Registration",
    },
    "etcd_aio.testing": {
        "etcd_aio.testing.binaries": "EtcdBinary available_etcds find_etcd",
        "etcd_aio.testing.cluster": "EtcdCluster",
        "etcd_aio.testing.errors": "EtcdBuildError EtcdNotFoundError EtcdStartError",
        "etcd_aio.testing.health_probe": "ProbeError RaftStatus",
        "etcd_aio.testing.options": "ServerOptions ServerSettings ServerTLS",
        "etcd_aio.testing.proxy": "Directions FaultProxy FaultProxyStatistics",
        "etcd_aio.testing.proxy_connection": "CutKind Direction",
        "etcd_aio.testing.server": "EtcdServer",
    },
    "etcd_aio.types": {
        "etcd_aio.arguments": "KeyLike LeaseLike ValueLike",
        "etcd_aio.types.auth": (
            "AuthResult AuthStatus AuthenticateResult KeyPermission Permission PermissionLike Role RoleListResult "
            "User UserListResult "
        ),
        "etcd_aio.types.cluster": (
            "Member MemberAddResult MemberListResult MemberPromoteResult MemberRemoveResult MemberUpdateResult "
        ),
        "etcd_aio.types.enums": (
            "DowngradeAction DowngradeActionLike OnCompaction OnCompactionLike SortBy SortByLike SortOrder "
            "SortOrderLike WatchFilter WatchFilterLike "
        ),
        "etcd_aio.types.keys": "KeyRange NO_END prefix_end range_arguments",
        "etcd_aio.types.kv": (
            "CompactResult DeleteResult Header KeyValue OpResult Operation PutResult RangeChunk RangeResult "
            "TxnResult shown_key shown_keys shown_lease shown_text "
        ),
        "etcd_aio.types.lease": (
            "LeaseGrantResult LeaseKeepAliveResult LeaseListResult LeaseRevokeResult LeaseStatus "
            "LeaseTimeToLiveResult "
        ),
        "etcd_aio.types.maintenance": (
            "ActiveAlarm Alarm AlarmLike AlarmResult DefragmentResult DowngradeInfo DowngradeResult "
            "EndpointVersions HashKVResult HashResult MoveLeaderResult SavedSnapshot SnapshotChunk SnapshotStatus "
            "StatusResult newest_leader version_tuple "
        ),
        "etcd_aio.types.member_health": "HealthCheck MemberHealth",
        "etcd_aio.types.replayed": "ReplayedDeleteResult ReplayedPutResult ReplayedTxnResult result_within",
        "etcd_aio.types.result": "Result",
        "etcd_aio.types.statistics": "ConnectivityState EndpointStatistics Health StreamStatistics",
        "etcd_aio.types.watch": "EarlyProgress Event EventType ResyncEvent WatchBatch WatchReply WatchView",
    },
    "etcd_aio.views": {
        "etcd_aio.views.ordered": "OrderedStatistics OrderedView",
        "etcd_aio.views.prefix": "PrefixView",
    },
    "etcd_aio.watch": {
        "etcd_aio.watch.deletion": "wait_deleted",
        "etcd_aio.watch.limits": "DEFAULT_MAX_PENDING",
        "etcd_aio.watch.service": "WatchService",
        "etcd_aio.watch.state": "WatchOptions",
        "etcd_aio.watch.viewed_watcher": "ViewedWatcher",
        "etcd_aio.watch.watcher": "WatchStatistics Watcher",
    },
}
