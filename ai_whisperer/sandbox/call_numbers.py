"""The numbers that calls to the kernel have on each kind of machine."""

from __future__ import annotations

import platform
from collections.abc import Mapping

import msgspec

from ai_whisperer.errors import SandboxError


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of machine: what the kernel calls it, and its numbers. A call that it never had is not among them."""

    architecture: int
    numbers: Mapping[str, int]


_TABLE = """
_sysctl              156     -
accept                43   202
accept4              288   242
acct                 163    89
add_key              248   217
adjtimex             159   171
bind                  49   200
bpf                  321   280
chmod                 90     -
chroot               161    51
clock_adjtime        305   266
clock_settime        227   112
clone                 56   220
clone3               435   435
creat                 85     -
create_module        174     -
delete_module        176   106
fanotify_init        300   262
fanotify_mark        301   263
fchmod                91    52
fchmodat             268    53
fcntl                 72    25
finit_module         313   273
fsconfig             431   431
fsmount              432   432
fsopen               430   430
fspick               433   433
get_kernel_syms      177     -
get_mempolicy        239   236
init_module          175   105
io_setup             206     0
io_uring_enter       426   426
io_uring_register    427   427
io_uring_setup       425   425
ioctl                 16    29
ioperm               173     -
iopl                 172     -
kcmp                 312   272
kexec_file_load      320   294
kexec_load           246   104
keyctl               250   219
lookup_dcookie       212    18
mbind                237   235
listen                50   201
memfd_create         319   279
memfd_secret         447   447
migrate_pages        256   238
mknod                133     -
mknodat              259    33
modify_ldt           154     -
mount                165    40
mount_setattr        442   442
move_mount           429   429
move_pages           279   239
mq_open              240   180
mq_unlink            241   181
msgctl                71   187
msgget                68   186
name_to_handle_at    303   264
nfsservctl           180    42
open                   2     -
open_by_handle_at    304   265
open_tree            428   428
openat               257    56
openat2              437   437
perf_event_open      298   241
personality          135    92
pidfd_getfd          438   438
pivot_root           155    41
process_madvise      440   440
process_vm_readv     310   270
process_vm_writev    311   271
ptrace               101   117
query_module         178     -
quotactl             179    60
quotactl_fd          443   443
reboot               169   142
request_key          249   218
seccomp              317   277
semctl                66   191
semget                64   190
sendmmsg             307   269
sendmsg               46   211
sendto                44   206
set_mempolicy        238   237
setdomainname        171   162
sethostname          170   161
setns                308   268
setsockopt            54   208
settimeofday         164   170
shmat                 30   196
shmctl                31   195
shmget                29   194
socket                41   198
socketpair            53   199
swapoff              168   225
swapon               167   224
sysfs                139     -
syslog               103   116
umount2              166    39
unshare              272    97
uselib               134     -
userfaultfd          323   282
ustat                136     -
vhangup              153    58
"""
"""The call, its number on x86-64, and on 64-bit ARM."""


def this_machine() -> Machine:
    """The kind that this is; raises `SandboxError` if its numbers are not known here."""
    found = _MACHINES.get(platform.machine())
    if found is None:
        raise SandboxError(
            f"The calls to the kernel cannot be filtered on this kind of machine ({platform.machine()}); "
            f"known are {', '.join(_MACHINES)}."
        )
    return found


def _numbers(column: int) -> dict[str, int]:
    rows = [line.split() for line in _TABLE.strip().splitlines()]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


_MACHINES = {
    "x86_64": Machine(architecture=0xC000003E, numbers=_numbers(1)),
    "aarch64": Machine(architecture=0xC00000B7, numbers=_numbers(2)),
}
