"""Errors: the exceptions of this library.

The most important ones. All are `EtcdError`; the builtin in brackets catches them too:

    EtcdTimeoutError (TimeoutError)             no answer in time. For a write, check `maybe_applied`
    NoAvailableEndpointsError (ConnectionError) no member could be reached; `errors` has the cause for each endpoint
    ConnectionLostError (ConnectionError)       the connection broke during the call. For a write, check `maybe_applied`
    UnavailableError                            the members answer, but cannot serve now: no leader, for example
    LeaseLostError                              the lease of a block is lost
    LockLostError, LeadershipLostError          the lock or the leadership of a block is lost
    LockTimeoutError (TimeoutError)             the lock was not acquired in time; ElectionTimeoutError: no leadership
    CompactedError                              the requested history was compacted: read the range again
    PermissionDeniedError (PermissionError)     the user lacks a permission
    AuthenticationFailedError                   wrong user or password
    InvalidRequestError (ValueError)            invalid arguments; nothing was sent
    ClientUsageError (RuntimeError)             the client is closed, or used in another event loop or process

Two attributes decide what to do: `retryable` (the same call may succeed later) and `maybe_applied` (the write may have
been applied).

The package has the exceptions, etcd's error table, gRPC status codes and `Delivery`. Whether to retry is decided by the
error handler.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.errors.attempt import Attempt as Attempt
    from etcd_aio.errors.attempt import AttemptFailure as AttemptFailure
    from etcd_aio.errors.attempt import Delivery as Delivery
    from etcd_aio.errors.attempt import LocalReason as LocalReason
    from etcd_aio.errors.attempt import RetryHint as RetryHint
    from etcd_aio.errors.attempt import StatusCode as StatusCode
    from etcd_aio.errors.attempt import printable as printable
    from etcd_aio.errors.attempt import sanitize as sanitize
    from etcd_aio.errors.auth import AuthenticationFailedError as AuthenticationFailedError
    from etcd_aio.errors.auth import AuthNotEnabledError as AuthNotEnabledError
    from etcd_aio.errors.auth import AuthOldRevisionError as AuthOldRevisionError
    from etcd_aio.errors.auth import InvalidAuthManagementError as InvalidAuthManagementError
    from etcd_aio.errors.auth import InvalidTokenError as InvalidTokenError
    from etcd_aio.errors.auth import PermissionNotGivenError as PermissionNotGivenError
    from etcd_aio.errors.auth import PermissionNotGrantedError as PermissionNotGrantedError
    from etcd_aio.errors.auth import RoleAlreadyExistsError as RoleAlreadyExistsError
    from etcd_aio.errors.auth import RoleEmptyError as RoleEmptyError
    from etcd_aio.errors.auth import RoleNotFoundError as RoleNotFoundError
    from etcd_aio.errors.auth import RoleNotGrantedError as RoleNotGrantedError
    from etcd_aio.errors.auth import RootRoleNotExistError as RootRoleNotExistError
    from etcd_aio.errors.auth import RootUserNotExistError as RootUserNotExistError
    from etcd_aio.errors.auth import UserAlreadyExistsError as UserAlreadyExistsError
    from etcd_aio.errors.auth import UserEmptyError as UserEmptyError
    from etcd_aio.errors.auth import UserNotFoundError as UserNotFoundError
    from etcd_aio.errors.availability import CorruptError as CorruptError
    from etcd_aio.errors.availability import LeaderChangedError as LeaderChangedError
    from etcd_aio.errors.availability import NoLeaderError as NoLeaderError
    from etcd_aio.errors.availability import NotCapableError as NotCapableError
    from etcd_aio.errors.availability import NotPrimaryLessorError as NotPrimaryLessorError
    from etcd_aio.errors.availability import NotSupportedForLearnerError as NotSupportedForLearnerError
    from etcd_aio.errors.availability import ProposalDroppedError as ProposalDroppedError
    from etcd_aio.errors.availability import RequestTimedOutError as RequestTimedOutError
    from etcd_aio.errors.availability import ServerStoppedError as ServerStoppedError
    from etcd_aio.errors.availability import TimeoutDueToConnectionLostError as TimeoutDueToConnectionLostError
    from etcd_aio.errors.availability import TimeoutDueToLeaderFailError as TimeoutDueToLeaderFailError
    from etcd_aio.errors.availability import TimeoutLeaderTransferError as TimeoutLeaderTransferError
    from etcd_aio.errors.availability import TimeoutWaitAppliedIndexError as TimeoutWaitAppliedIndexError
    from etcd_aio.errors.availability import UnhealthyClusterError as UnhealthyClusterError
    from etcd_aio.errors.base import BlockingInLoopError as BlockingInLoopError
    from etcd_aio.errors.base import ClientClosedError as ClientClosedError
    from etcd_aio.errors.base import ClientUsageError as ClientUsageError
    from etcd_aio.errors.base import ClusterChangedError as ClusterChangedError
    from etcd_aio.errors.base import ConfigError as ConfigError
    from etcd_aio.errors.base import ConnectError as ConnectError
    from etcd_aio.errors.base import ConnectionLostError as ConnectionLostError
    from etcd_aio.errors.base import DiscoveryError as DiscoveryError
    from etcd_aio.errors.base import EtcdError as EtcdError
    from etcd_aio.errors.base import EtcdTimeoutError as EtcdTimeoutError
    from etcd_aio.errors.base import ForkedError as ForkedError
    from etcd_aio.errors.base import InvalidRequestError as InvalidRequestError
    from etcd_aio.errors.base import LeaseExpiredError as LeaseExpiredError
    from etcd_aio.errors.base import LeaseLostError as LeaseLostError
    from etcd_aio.errors.base import MalformedReplyError as MalformedReplyError
    from etcd_aio.errors.base import NoAvailableEndpointsError as NoAvailableEndpointsError
    from etcd_aio.errors.base import OldClusterError as OldClusterError
    from etcd_aio.errors.base import ProxyAuthenticationError as ProxyAuthenticationError
    from etcd_aio.errors.base import ProxyError as ProxyError
    from etcd_aio.errors.base import ReplyTooLargeError as ReplyTooLargeError
    from etcd_aio.errors.base import SnapshotChecksumError as SnapshotChecksumError
    from etcd_aio.errors.base import StoreRolledBackError as StoreRolledBackError
    from etcd_aio.errors.base import TLSError as TLSError
    from etcd_aio.errors.base import TokenUnavailableError as TokenUnavailableError
    from etcd_aio.errors.base import TransportError as TransportError
    from etcd_aio.errors.base import UnknownEndpointError as UnknownEndpointError
    from etcd_aio.errors.base import WrongLoopError as WrongLoopError
    from etcd_aio.errors.base import with_history as with_history
    from etcd_aio.errors.cache import CacheError as CacheError
    from etcd_aio.errors.cache import CacheRangeError as CacheRangeError
    from etcd_aio.errors.cache import CacheTimeoutError as CacheTimeoutError
    from etcd_aio.errors.cluster import BadLeaderTransfereeError as BadLeaderTransfereeError
    from etcd_aio.errors.cluster import ClusterIDMismatchError as ClusterIDMismatchError
    from etcd_aio.errors.cluster import ClusterVersionUnavailableError as ClusterVersionUnavailableError
    from etcd_aio.errors.cluster import DowngradeInProcessError as DowngradeInProcessError
    from etcd_aio.errors.cluster import InvalidDowngradeTargetVersionError as InvalidDowngradeTargetVersionError
    from etcd_aio.errors.cluster import LearnerNotReadyError as LearnerNotReadyError
    from etcd_aio.errors.cluster import MemberBadURLsError as MemberBadURLsError
    from etcd_aio.errors.cluster import MemberExistsError as MemberExistsError
    from etcd_aio.errors.cluster import MemberNotEnoughStartedError as MemberNotEnoughStartedError
    from etcd_aio.errors.cluster import MemberNotFoundError as MemberNotFoundError
    from etcd_aio.errors.cluster import MemberNotLearnerError as MemberNotLearnerError
    from etcd_aio.errors.cluster import NoInflightDowngradeError as NoInflightDowngradeError
    from etcd_aio.errors.cluster import NotRaftLeaderError as NotRaftLeaderError
    from etcd_aio.errors.cluster import PeerURLExistsError as PeerURLExistsError
    from etcd_aio.errors.cluster import TooManyLearnersError as TooManyLearnersError
    from etcd_aio.errors.cluster import WrongDowngradeVersionFormatError as WrongDowngradeVersionFormatError
    from etcd_aio.errors.concurrency import ElectionError as ElectionError
    from etcd_aio.errors.concurrency import ElectionTimeoutError as ElectionTimeoutError
    from etcd_aio.errors.concurrency import LeadershipLostError as LeadershipLostError
    from etcd_aio.errors.concurrency import LockError as LockError
    from etcd_aio.errors.concurrency import LockLostError as LockLostError
    from etcd_aio.errors.concurrency import LockTimeoutError as LockTimeoutError
    from etcd_aio.errors.concurrency import NotHeldError as NotHeldError
    from etcd_aio.errors.concurrency import NotLeaderError as NotLeaderError
    from etcd_aio.errors.families import AbortedError as AbortedError
    from etcd_aio.errors.families import AlreadyExistsError as AlreadyExistsError
    from etcd_aio.errors.families import AuthError as AuthError
    from etcd_aio.errors.families import DataLossError as DataLossError
    from etcd_aio.errors.families import DowngradeError as DowngradeError
    from etcd_aio.errors.families import FailedPreconditionError as FailedPreconditionError
    from etcd_aio.errors.families import InternalServerError as InternalServerError
    from etcd_aio.errors.families import InvalidArgumentError as InvalidArgumentError
    from etcd_aio.errors.families import LeaseError as LeaseError
    from etcd_aio.errors.families import MembershipError as MembershipError
    from etcd_aio.errors.families import NotFoundError as NotFoundError
    from etcd_aio.errors.families import NotSupportedByServerError as NotSupportedByServerError
    from etcd_aio.errors.families import OutOfRangeError as OutOfRangeError
    from etcd_aio.errors.families import PermissionDeniedError as PermissionDeniedError
    from etcd_aio.errors.families import ResourceExhaustedError as ResourceExhaustedError
    from etcd_aio.errors.families import ServerCancelledError as ServerCancelledError
    from etcd_aio.errors.families import ServerDeadlineExceededError as ServerDeadlineExceededError
    from etcd_aio.errors.families import ServerError as ServerError
    from etcd_aio.errors.families import UnauthenticatedError as UnauthenticatedError
    from etcd_aio.errors.families import UnavailableError as UnavailableError
    from etcd_aio.errors.families import UnknownServerError as UnknownServerError
    from etcd_aio.errors.families import WatchError as WatchError
    from etcd_aio.errors.mirror import MirrorConflictError as MirrorConflictError
    from etcd_aio.errors.mirror import MirrorError as MirrorError
    from etcd_aio.errors.naming import NamingError as NamingError
    from etcd_aio.errors.naming import NoServiceEndpointError as NoServiceEndpointError
    from etcd_aio.errors.naming import ServiceConflictError as ServiceConflictError
    from etcd_aio.errors.offline import DatabaseFileError as DatabaseFileError
    from etcd_aio.errors.offline import DatabaseFileInUseError as DatabaseFileInUseError
    from etcd_aio.errors.once import OutcomeUnknownError as OutcomeUnknownError
    from etcd_aio.errors.once import ResultLostError as ResultLostError
    from etcd_aio.errors.queues import ItemInDoubtError as ItemInDoubtError
    from etcd_aio.errors.queues import JobLostError as JobLostError
    from etcd_aio.errors.queues import QueueError as QueueError
    from etcd_aio.errors.queues import QueueTimeoutError as QueueTimeoutError
    from etcd_aio.errors.recipes import BarrierError as BarrierError
    from etcd_aio.errors.recipes import BarrierTimeoutError as BarrierTimeoutError
    from etcd_aio.errors.recipes import CounterError as CounterError
    from etcd_aio.errors.recipes import CounterLimitError as CounterLimitError
    from etcd_aio.errors.recipes import EmptyGroupError as EmptyGroupError
    from etcd_aio.errors.recipes import GroupError as GroupError
    from etcd_aio.errors.recipes import MemberConflictError as MemberConflictError
    from etcd_aio.errors.recipes import ScheduleError as ScheduleError
    from etcd_aio.errors.recipes import TooManyParticipantsError as TooManyParticipantsError
    from etcd_aio.errors.recipes import TxnConflictError as TxnConflictError
    from etcd_aio.errors.requests import CompactedError as CompactedError
    from etcd_aio.errors.requests import DuplicateKeyError as DuplicateKeyError
    from etcd_aio.errors.requests import DuplicateWatchIDError as DuplicateWatchIDError
    from etcd_aio.errors.requests import EmptyKeyError as EmptyKeyError
    from etcd_aio.errors.requests import EmptyWatcherRangeError as EmptyWatcherRangeError
    from etcd_aio.errors.requests import FutureRevisionError as FutureRevisionError
    from etcd_aio.errors.requests import InvalidClientAPIVersionError as InvalidClientAPIVersionError
    from etcd_aio.errors.requests import InvalidSortOptionError as InvalidSortOptionError
    from etcd_aio.errors.requests import KeyNotFoundError as KeyNotFoundError
    from etcd_aio.errors.requests import LeaseExistsError as LeaseExistsError
    from etcd_aio.errors.requests import LeaseNotFoundError as LeaseNotFoundError
    from etcd_aio.errors.requests import LeaseProvidedError as LeaseProvidedError
    from etcd_aio.errors.requests import LeaseTTLTooLargeError as LeaseTTLTooLargeError
    from etcd_aio.errors.requests import NoSpaceError as NoSpaceError
    from etcd_aio.errors.requests import RequestCancelledError as RequestCancelledError
    from etcd_aio.errors.requests import RequestDeadlineExceededError as RequestDeadlineExceededError
    from etcd_aio.errors.requests import RequestTooLargeError as RequestTooLargeError
    from etcd_aio.errors.requests import TooManyOpsError as TooManyOpsError
    from etcd_aio.errors.requests import TooManyRequestsError as TooManyRequestsError
    from etcd_aio.errors.requests import ValueProvidedError as ValueProvidedError
    from etcd_aio.errors.requests import WatchCancelledError as WatchCancelledError
    from etcd_aio.errors.server_error_table import server_error as server_error
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
