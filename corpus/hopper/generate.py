"""Prints attention kernels for Hopper as PTX: `python3 corpus/hopper/generate.py OUT` writes those of `KERNELS`.

A warpgroup fills rings of K and V and two buffers of Q; one to four others compute 64 rows each and wait for stages at
barriers. Blocks take tiles one after the other, by a stride or by a counter. A sequence must have a multiple of 64 rows
and, without `tail` or a mask, of the keys of a block; the tiles of a section must be two or more, because the
reciprocal that divides by them has 32 bits.
"""

import os, struct, sys

# A thread whose weights of a block sum to no more has none that f16 cannot hold.
LARGEST_SUM = 8192.0


def f32(x):
    return '0f%08X' % struct.unpack('<I', struct.pack('<f', x))[0]


class Kernel:
    """One kernel: a warpgroup brings tiles with bulk copies, the others compute 64 rows each."""

    def __init__(
        self,
        name,
        dim,
        keys,
        warpgroups,
        stages=2,
        causal=False,
        bf16=False,
        turns=True,
        counted=False,
        tail=False,
        query_in_registers=False,
        optimistic=True,
        skips=False,
        overlap=False,
    ):
        self.name, self.dim, self.keys, self.warpgroups = name, dim, keys, warpgroups
        self.causal, self.turns, self.counted, self.tail = causal, turns, counted, tail
        self.query_in_registers, self.optimistic = query_in_registers, optimistic
        self.skips, self.overlap = skips, overlap
        self.key_stages = self.value_stages = stages
        self.rows = 64 * warpgroups
        self.element = 'bf16' if bf16 else 'f16'
        self.score_registers, self.weight_registers, self.output_registers = keys // 2, keys // 4, dim // 2
        self.chunks = dim // 64
        # What setmaxnreg leaves must fit what the launch gave: threads * 8 * floor(65536 / threads / 8) registers.
        registers = {1: (40, 240), 2: (24, 240), 3: (32, 160), 4: (24, 112)}
        self.producer_registers, self.consumer_registers = registers[warpgroups]
        self.threads = 128 * (warpgroups + 1)
        self.lines, self.labels = [], 0
        self.place()

    def place(self):
        """Shared memory from an address that is a multiple of 1024: Q twice, rings of K and V, barriers, tile info."""
        self.warpgroup_bytes = 64 * self.dim * 2
        self.query_bytes = self.warpgroup_bytes * self.warpgroups
        self.stage_bytes = self.keys * self.dim * 2
        self.keys_at = 2 * self.query_bytes
        self.values_at = self.keys_at + self.key_stages * self.stage_bytes
        at = self.values_at + self.value_stages * self.stage_bytes
        for ring, stages in (('query', 2), ('key', self.key_stages), ('value', self.value_stages)):
            for state in ('full', 'empty'):
                setattr(self, f'{ring}_{state}', at)
                at += 8 * stages
        self.info_at = (at + 15) // 16 * 16
        self.smem = self.info_at + 48 + 1024

    def emit(self, *a):
        for x in a:
            self.lines.append('    ' + x)

    def label(self, n):
        self.lines.append(n + ':')

    def fresh(self, n='L'):
        self.labels += 1
        return '$%s_%d' % (n, self.labels)

    def wait(self, addr, par, pred='%pw'):
        L = self.fresh('W')
        D = self.fresh('WD')
        self.label(L)
        self.emit(
            f'mbarrier.try_wait.parity.shared::cta.b64 {pred}, [{addr}], {par};', f'@{pred} bra {D};', f'bra {L};'
        )
        self.label(D)

    def scores(self, qlo, klo):
        """S = Q K^T; the names are registers with the low words of descriptors."""
        kind = f'm64n{self.keys}k16.f32.{self.element}.{self.element}'
        accumulator = ', '.join(f'%s{i}' for i in range(self.keys // 2))
        for k in range(self.dim // 16):
            inside = k % 4 * 32
            key = (k // 4 * self.keys * 128 + inside) >> 4
            more = '%pfalse' if k == 0 else '%ptrue'
            if self.query_in_registers:
                query = ', '.join(f'%qr{4 * k + i}' for i in range(4))
                self.emit(
                    f'add.u32 %t1, {klo}, {key};', 'mov.b64 %db, {%t1, %dhi};',
                    f'wgmma.mma_async.sync.aligned.{kind} {{{accumulator}}}, {{{query}}}, %db, {more}, 1, 1, 0;',
                )
            else:
                self.emit(
                    f'add.u32 %t0, {qlo}, {(k // 4 * 8192 + inside) >> 4};', f'add.u32 %t1, {klo}, {key};',
                    'mov.b64 %da, {%t0, %dhi};', 'mov.b64 %db, {%t1, %dhi};',
                    f'wgmma.mma_async.sync.aligned.{kind} {{{accumulator}}}, %da, %db, {more}, 1, 1, 0, 0;',
                )
        self.emit('wgmma.commit_group.sync.aligned;')

    def output(self, vlo, pz):
        """O += P V, or O = P V where the predicate `pz` is false."""
        kind = f'm64n{self.dim}k16.f32.{self.element}.{self.element}'
        accumulator = ', '.join(f'%o{i}' for i in range(self.output_registers))
        for k in range(self.keys // 16):
            weights = ', '.join(f'%p{4 * k + i}' for i in range(4))
            more = pz if k == 0 else '%ptrue'
            self.emit(
                f'add.u32 %t1, {vlo}, {k * 2048 >> 4};', 'mov.b64 %db, {%t1, %dvhi};',
                f'wgmma.mma_async.sync.aligned.{kind} {{{accumulator}}}, {{{weights}}}, %db, {more}, 1, 1, 1;',
            )
        self.emit('wgmma.commit_group.sync.aligned;')

    def mask(self):
        """uses %lim0,%lim1 = number of valid columns (relative to this thread's first column of the block)"""
        emit = self.emit
        for i in range(self.score_registers):
            off = i // 4 * 8 + (i & 1)
            lim = '%lim1' if i & 2 else '%lim0'
            emit(f'setp.gt.s32 %pm, {lim}, {off};', f"selp.f32 %s{i}, %s{i}, {f32(float('-inf'))}, %pm;")

    def rowmax(self, nchain=2):
        emit = self.emit
        for r in range(2):
            idx = [i for i in range(self.score_registers) if i >> 1 & 1 == r]
            ch = [idx[c::nchain] for c in range(nchain)]
            for c in range(nchain):
                emit(f'max.f32 %x{r}{c}, %s{ch[c][0]}, %s{ch[c][1]};')
            for k in range(2, len(ch[0])):
                for c in range(nchain):
                    if k < len(ch[c]):
                        emit(f'max.f32 %x{r}{c}, %x{r}{c}, %s{ch[c][k]};')
            n = nchain
            while n > 1:
                for c in range(n // 2):
                    emit(f'max.f32 %x{r}{c}, %x{r}{c}, %x{r}{c + n // 2};')
                n //= 2
            emit(f'mov.f32 %mx{r}, %x{r}0;')
        for d in (1, 2):
            for r in range(2):
                emit(f'shfl.sync.bfly.b32 %y{r}, %mx{r}, {d}, 31, -1;')
            for r in range(2):
                emit(f'max.f32 %mx{r}, %mx{r}, %y{r};')

    def softmax(self, first):
        """S -> exp2 values in S; m,l updated; %prs = warp-uniform 'rescale O' ; alpha in %a0,%a1"""
        emit = self.emit
        self.rowmax(4 if self.score_registers >= 32 else 2)
        if first:
            for r in range(2):
                emit(f'mov.f32 %mm{r}, %mx{r};', f'mul.f32 %nm{r}, %mx{r}, %nsc;', f'mov.f32 %l{r}, 0f00000000;')
        else:
            emit('mul.f32 %y0, %mx0, %nsc;', 'mul.f32 %y1, %mx1, %nsc;')
            emit('sub.f32 %a0, %y0, %nm0;', 'sub.f32 %a1, %y1, %nm1;')
            emit('min.f32 %x00, %a0, %a1;')
            emit(f'setp.lt.f32 %prl, %x00, {f32(-8.0)};')
            emit('vote.sync.any.pred %prs, %prl, -1;')
            L = self.fresh('NR')
            emit(f'@!%prs bra {L};')
            for r in range(2):
                emit(
                    f'min.f32 %a{r}, %a{r}, 0f00000000;', f'ex2.approx.ftz.f32 %a{r}, %a{r};',
                    f'min.f32 %nm{r}, %nm{r}, %y{r};', f'mul.f32 %l{r}, %l{r}, %a{r};',
                )
            self.label(L)
        nch = 2
        for r in range(2):
            for c in range(1, nch):
                emit(f'mov.f32 %x{r}{c}, 0f00000000;')
        cnt = [0, 0]
        for i in range(self.score_registers):
            r = i >> 1 & 1
            emit(f'fma.rn.f32 %s{i}, %s{i}, %sc, %nm{r};')
            emit(f'ex2.approx.ftz.f32 %s{i}, %s{i};')
            c = cnt[r] % nch
            cnt[r] += 1
            acc = f'%l{r}' if c == 0 else f'%x{r}{c}'
            emit(f'add.f32 {acc}, {acc}, %s{i};')
        for r in range(2):
            for c in range(1, nch):
                emit(f'add.f32 %l{r}, %l{r}, %x{r}{c};')

    def exponentials(self):
        """S -> exp2(S*sc + nm) in place; per-thread block sums in %bs0,%bs1"""
        emit = self.emit
        nch = 2
        cnt = [0, 0]
        for i in range(self.score_registers):
            r = i >> 1 & 1
            emit(f'fma.rn.f32 %s{i}, %s{i}, %sc, %nm{r};')
            emit(f'ex2.approx.ftz.f32 %s{i}, %s{i};')
            c = cnt[r] % nch
            k = cnt[r]
            cnt[r] += 1
            acc = f'%x{r}{c}'
            if k < nch:
                emit(f'mov.f32 {acc}, %s{i};')
            else:
                emit(f'add.f32 {acc}, {acc}, %s{i};')
        for r in range(2):
            emit(f'add.f32 %bs{r}, %x{r}0, %x{r}1;')

    def optimistic_softmax(self):
        """optimistic: no row max except at the first block of a tile; per-thread block sums prove P is in range"""
        emit = self.emit
        NF = self.fresh('NF')
        self.SLOW = self.fresh('SLOW')
        self.BACK = self.fresh('BACK')
        emit(f'@!%plast bra {NF};')
        self.rowmax(4 if self.score_registers >= 32 else 2)
        for r in range(2):
            emit(f'mul.f32 %nm{r}, %mx{r}, %nsc;')
        self.label(NF)
        self.exponentials()
        emit('setp.ne.u32 %prs, 0, 0;')
        emit(
            'max.f32 %y0, %bs0, %bs1;', f'setp.le.f32 %prl, %y0, {f32(LARGEST_SUM)};',
            'vote.sync.all.pred %prl, %prl, -1;', f'@!%prl bra {self.SLOW};',
        )
        self.label(self.BACK)
        emit('add.f32 %l0, %l0, %bs0;', 'add.f32 %l1, %l1, %bs1;')

    def slow_paths(self):
        """out of line; a thread's block sum is > T, inf or nan"""
        emit = self.emit
        R = self.fresh('RECOMP')
        self.label(self.SLOW)
        emit(
            f'setp.lt.f32 %prl, %bs0, {f32(1.2676506002282294e+30)};',
            f'setp.lt.f32 %pm, %bs1, {f32(1.2676506002282294e+30)};', 'and.pred %prl, %prl, %pm;',
            'vote.sync.all.pred %prl, %prl, -1;', f'@!%prl bra {R};',
        )
        self.rowmax(2)
        for r in range(2):
            emit(
                f'max.f32 %mx{r}, %mx{r}, 0f3F800000;', f'mov.b32 %t0, %mx{r};', 'and.b32 %t0, %t0, 0x7f800000;',
                'sub.u32 %t1, 0x7f000000, %t0;', f'mov.b32 %a{r}, %t1;', 'shr.u32 %t0, %t0, 23;',
                'sub.u32 %t0, 127, %t0;', 'cvt.rn.f32.s32 %y0, %t0;', f'add.f32 %nm{r}, %nm{r}, %y0;',
                f'mul.f32 %bs{r}, %bs{r}, %a{r};', f'mul.f32 %l{r}, %l{r}, %a{r};',
            )
        for i in range(self.score_registers):
            emit(f'mul.f32 %s{i}, %s{i}, %a{i >> 1 & 1};')
        emit('setp.eq.u32 %prs, 0, 0;', f'bra {self.BACK};')
        self.label(R)
        for i in range(self.score_registers):
            emit(f'mov.f32 %s{i}, 0f00000000;')
        emit(
            f'mad.lo.u32 %t2, %ki, {self.stage_bytes}, %sb;', f'add.u32 %t2, %t2, {self.keys_at};',
            'shr.u32 %t0, %lane, 4;', 'shl.b32 %t0, %t0, 3;', 'and.b32 %t1, %lane, 7;', 'add.u32 %t0, %t0, %t1;',
            'shl.b32 %t0, %t0, 7;', 'add.u32 %t2, %t2, %t0;', 'shr.u32 %t0, %lane, 3;', 'and.b32 %t0, %t0, 1;',
            'xor.b32 %t0, %t0, %t1;', 'shl.b32 %t0, %t0, 4;', 'add.u32 %t2, %t2, %t0;',
        )
        emit(f'mad.lo.u32 %t3, %qs, {self.query_bytes}, %ostbase;')
        for k in range(self.dim // 16):
            emit(
                f'xor.b32 %t1, %t3, {2 * k % 8 * 16};',
                f'ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {{%w0, %w1, %w2, %w3}}, [%t1+{k // 4 * 64 * 128}];',
                f'xor.b32 %t1, %t2, {2 * k % 8 * 16};',
            )
            for nb in range(0, self.keys // 8, 2):
                emit(
                    f'ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {{%v0, %v1, %v2, %v3}}, [%t1+{k // 4 * self.keys * 128 + nb * 1024}];'
                )
                for q in range(2):
                    d = ', '.join((f'%s{4 * (nb + q) + i}' for i in range(4)))
                    emit(
                        f'mma.sync.aligned.m16n8k16.row.col.f32.{self.element}.{self.element}.f32 {{{d}}}, {{%w0, %w1, %w2, %w3}}, {{%v{2 * q}, %v{2 * q + 1}}}, {{{d}}};'
                    )
        emit('mov.u32 %t0, %jm;')
        self.mask_if_needed()
        self.rowmax(2)
        for r in range(2):
            emit(
                f'mul.f32 %y0, %mx{r}, %nsc;', f'sub.f32 %a{r}, %y0, %nm{r};', f'min.f32 %a{r}, %a{r}, 0f00000000;',
                f'ex2.approx.ftz.f32 %a{r}, %a{r};', f'min.f32 %nm{r}, %nm{r}, %y0;', f'mul.f32 %l{r}, %l{r}, %a{r};',
            )
        self.exponentials()
        emit('setp.eq.u32 %prs, 0, 0;', f'bra {self.BACK};')

    def narrow_weights(self):
        for k in range(self.weight_registers):
            self.emit(f'cvt.rn.{self.element}x2.f32 %p{k}, %s{2 * k + 1}, %s{2 * k};')

    def rescale(self):
        emit = self.emit
        L = self.fresh('NRO')
        emit(f'@!%prs bra {L};')
        for i in range(self.output_registers):
            emit(f'mul.f32 %o{i}, %o{i}, %a{i >> 1 & 1};')
        self.label(L)

    def store_output(self, m0, bh, qs):
        emit = self.emit
        emit('bar.sync %barwg, 128;')
        L = self.fresh('NST')
        emit('and.b32 %t1, %tidx, 127;', 'setp.eq.u32 %pwg0, %t1, 0;', f'@!%pwg0 bra {L};')
        emit(f'mad.lo.u32 %t0, {qs}, {self.query_bytes}, %owgbase;', f'add.u32 %t1, {m0}, %wgrow;')
        for c in range(self.chunks):
            emit(
                f'mov.u32 %t2, {c * 64};', f'add.u32 %t3, %t0, {c * 64 * 128};',
                f'cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%tmo, {{%t2, %t1, {bh}}}], [%t3];',
            )
        emit('cp.async.bulk.commit_group;')
        self.label(L)

    def row_of_thread(self, d):
        """row of this thread inside the tile, from tid (saves a live register); clobbers t5"""
        self.emit(
            'mov.u32 %t5, %tid.x;', 'sub.u32 %t5, %t5, 128;', f'shr.u32 {d}, %t5, 5;', f'shl.b32 {d}, {d}, 4;',
            'shr.u32 %t5, %t5, 2;', 'and.b32 %t5, %t5, 7;', f'add.u32 {d}, {d}, %t5;',
        )

    def epilogue(self, l, nm, m0, bh, qs):
        """O regs -> smem -> TMA store.  l = ('%l0','%l1') partial sums; nm = -(m*scale_log2)"""
        emit = self.emit
        emit(f'mov.f32 %e0, {l[0]};', f'mov.f32 %e1, {l[1]};')
        for d in (1, 2):
            for r in range(2):
                emit(f'shfl.sync.bfly.b32 %y{r}, %e{r}, {d}, 31, -1;')
            for r in range(2):
                emit(f'add.f32 %e{r}, %e{r}, %y{r};')
        for r in range(2):
            emit(f'rcp.approx.ftz.f32 %y{r}, %e{r};')
        emit(f'mad.lo.u32 %t0, {qs}, {self.query_bytes}, %ostbase;')
        if not self.query_in_registers:
            emit('bar.sync %barwg, 128;')
        for j in range(0, self.dim // 8, 2):
            for k in range(4):
                i = 4 * j + 2 * k
                r = k & 1
                emit(
                    f'mul.f32 %z0, %o{i}, %y{r};', f'mul.f32 %z1, %o{i + 1}, %y{r};',
                    f'cvt.rn.{self.element}x2.f32 %w{k}, %z1, %z0;',
                )
            emit(f'xor.b32 %t1, %t0, {j % 8 * 16};')
            emit(f'stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%t1+{j // 8 * 64 * 128}], {{%w0, %w1, %w2, %w3}};')
        emit('fence.proxy.async.shared::cta;')
        self.store_output(m0, bh, qs)
        L2 = self.fresh('NL')
        for r in range(2):
            emit(
                f'lg2.approx.ftz.f32 %y{r}, %e{r};', f'sub.f32 %y{r}, %y{r}, {nm[r]};',
                f'mul.f32 %y{r}, %y{r}, {f32(0.6931471805599453)};',
            )
        self.row_of_thread('%t1')
        emit(f'add.u32 %t1, {m0}, %t1;')
        emit(
            f'mad.lo.u32 %t2, {bh}, %S, %t1;', 'mul.wide.u32 %ad, %t2, 4;', 'ld.param.u64 %lsep, [p_lse];',
            'cvta.to.global.u64 %lsep, %lsep;', 'add.u64 %ad, %ad, %lsep;',
        )
        emit(
            'mov.u32 %t4, %tid.x;', 'and.b32 %t4, %t4, 3;', 'setp.eq.u32 %plq, %t4, 0;', 'setp.lt.u32 %pm, %t1, %S;',
            'and.pred %pm, %pm, %plq;', '@%pm st.global.f32 [%ad], %y0;',
        )
        emit(
            'add.u32 %t1, %t1, 8;', 'setp.lt.u32 %pm, %t1, %S;', 'and.pred %pm, %pm, %plq;',
            '@%pm st.global.f32 [%ad+32], %y1;',
        )

    def advance(self, idx, ph, n):
        """ring advance"""
        emit = self.emit
        if n == 1:
            emit(f'xor.b32 {ph}, {ph}, 1;')
        elif n == 2:
            emit(f'xor.b32 {idx}, {idx}, 1;', f'setp.eq.u32 %pw, {idx}, 0;', f'@%pw xor.b32 {ph}, {ph}, 1;')
        else:
            emit(
                f'add.u32 {idx}, {idx}, 1;', f'setp.eq.u32 %pw, {idx}, {n};', f'@%pw mov.u32 {idx}, 0;',
                f'@%pw xor.b32 {ph}, {ph}, 1;',
            )

    def barrier_address(self, dst, base, idx, n):
        if n == 1:
            self.emit(f'add.u32 {dst}, %sb, {base};')
        else:
            self.emit(f'shl.b32 {dst}, {idx}, 3;', f'add.u32 {dst}, {dst}, %sb;', f'add.u32 {dst}, {dst}, {base};')

    def producer(self):
        emit = self.emit
        emit(f'setmaxnreg.dec.sync.aligned.u32 {self.producer_registers};')
        emit('setp.ne.u32 %pw, %tidx, 0;', '@%pw bra $EXIT;')
        emit(
            'prefetch.tensormap [%tmq];', 'prefetch.tensormap [%tmk];', 'prefetch.tensormap [%tmv];',
            'prefetch.tensormap [%tmo];',
        )
        for r in ('q', 'k', 'v'):
            emit(f'mov.u32 %{r}i, 0;', f'mov.u32 %{r}ph, 1;')
        emit('mov.u32 %tile, %ctaid.x;', 'mov.u32 %G, %nctaid.x;')
        emit('mov.u32 %hzero, 0;')

        def decode(tile, bh, m0, n):
            if self.causal:
                emit(
                    'mul.lo.u32 %t0, %hg, %tph;', f'mul.hi.u32 %t1, {tile}, %mg;', 'mul.lo.u32 %t2, %t1, %t0;',
                    f'sub.u32 %t2, {tile}, %t2;', 'shr.u32 %t3, %t2, %lh;', 'sub.u32 %t4, %hg, 1;',
                    'and.b32 %t4, %t2, %t4;', f'mad.lo.u32 {bh}, %t1, %hg, %t4;', 'sub.u32 %t3, %tph, %t3;',
                    'sub.u32 %t3, %t3, 1;', f'mul.lo.u32 {m0}, %t3, {self.rows};', f'add.u32 %t0, {m0}, {self.rows};',
                    'min.u32 %t0, %t0, %S;', f'add.u32 %t0, %t0, {self.keys - 1};', f'div.u32 {n}, %t0, {self.keys};',
                )
            else:
                emit(
                    f'mul.hi.u32 {bh}, {tile}, %mg;', f'mul.lo.u32 %t0, {bh}, %tph;', f'sub.u32 %t0, {tile}, %t0;',
                    f'mul.lo.u32 {m0}, %t0, {self.rows};', f'add.u32 %t0, %S, {self.keys - 1};',
                    f'div.u32 {n}, %t0, {self.keys};',
                )

        emit('ld.param.u32 %mg, [p_mg];', 'ld.param.u32 %lh, [p_lh];')
        if self.counted:
            emit('atom.global.add.u32 %nxt, [%cnt], 1;')
        decode('%tile', '%bh', '%tm0', '%n')
        L = self.fresh('PT')
        E = self.fresh('PE')
        self.label(L)
        emit('setp.ge.u32 %pw, %tile, %ntiles;', f'@%pw bra {E};')
        if self.counted:
            emit('add.u32 %ntile, %nxt, %G;', 'atom.global.add.u32 %nxt, [%cnt], 1;')
        else:
            emit('add.u32 %ntile, %tile, %G;')
        decode('%ntile', '%nbh', '%ntm0', '%nn')
        self.barrier_address('%ba', self.query_empty, '%qi', 2)
        self.wait('%ba', '%qph')
        emit(
            'shl.b32 %t0, %qi, 4;', 'add.u32 %t0, %t0, %sb;',
            f'st.shared.v4.u32 [%t0+{self.info_at}], {{%tm0, %bh, %n, %tile}};',
        )
        self.barrier_address('%ba', self.query_full, '%qi', 2)
        emit(f'mbarrier.arrive.expect_tx.shared::cta.b64 _, [%ba], {self.query_bytes};')
        emit(f'mad.lo.u32 %t0, %qi, {self.query_bytes}, %sb;')

        def qload():
            for w in range(self.warpgroups):
                for c in range(self.chunks):
                    emit(
                        f'add.u32 %t1, %t0, {w * self.warpgroup_bytes + c * 64 * 128};', f'mov.u32 %t2, {c * 64};',
                        f'add.u32 %t3, %tm0, {w * 64};',
                        'cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%t1], [%tmq, {%t2, %t3, %bh}], [%ba];',
                    )

        qload()
        self.advance('%qi', '%qph', 2)
        emit('mov.u32 %j, 0;', 'mov.u32 %r0, 0;')
        B = self.fresh('PB')
        self.label(B)
        for nm, st, full, empty, off, tm in (
            ('k', self.key_stages, self.key_full, self.key_empty, self.keys_at, '%tmk'),
            ('v', self.value_stages, self.value_full, self.value_empty, self.values_at, '%tmv'),
        ):
            self.barrier_address('%ba', empty, f'%{nm}i', st)
            self.wait('%ba', f'%{nm}ph')
            self.barrier_address('%ba', full, f'%{nm}i', st)
            emit(f'mbarrier.arrive.expect_tx.shared::cta.b64 _, [%ba], {self.stage_bytes};')
            emit(f'mad.lo.u32 %t0, %{nm}i, {self.stage_bytes}, %sb;')
            for c in range(self.chunks):
                emit(
                    f'add.u32 %t1, %t0, {off + c * self.keys * 128};', f'mov.u32 %t2, {c * 64};',
                    f'cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%t1], [{tm}, {{%t2, %r0, %bh}}], [%ba];',
                )
            self.advance(f'%{nm}i', f'%{nm}ph', st)
        emit(f'add.u32 %r0, %r0, {self.keys};', 'add.u32 %j, %j, 1;', 'setp.lt.u32 %pw, %j, %n;', f'@%pw bra {B};')
        emit('mov.u32 %tile, %ntile;', 'mov.u32 %bh, %nbh;', 'mov.u32 %tm0, %ntm0;', 'mov.u32 %n, %nn;')
        emit(f'bra {L};')
        self.label(E)
        self.barrier_address('%ba', self.query_empty, '%qi', 2)
        self.wait('%ba', '%qph')
        emit(
            'mov.u32 %t1, 0;', 'shl.b32 %t0, %qi, 4;', 'add.u32 %t0, %t0, %sb;',
            f'st.shared.v4.u32 [%t0+{self.info_at}], {{%t1, %t1, %t1, %t1}};',
        )
        self.barrier_address('%ba', self.query_full, '%qi', 2)
        emit('mbarrier.arrive.shared::cta.b64 _, [%ba];')
        if self.counted:
            # Were it relaxed, nothing would order the others' last tickets with the store that sets the counter back:
            # `error[race-global]`, in kernels that never failed.
            emit(
                'shr.u32 %t3, %nxt, 31;', 'add.u32 %t3, %t3, 1;',
                'atom.acq_rel.gpu.global.add.u32 %t0, [%cnt+4], %t3;',
                'sub.u32 %t1, %G, 1;', 'setp.eq.u32 %pw, %t0, %t1;', 'mov.u32 %t2, 0;',
                '@%pw st.global.u32 [%cnt], %t2;', '@%pw st.global.u32 [%cnt+4], %t2;',
            )
        emit('bra $EXIT;')

    def release(self, base, idx, n):
        self.barrier_address('%t0', base, idx, n)
        self.emit('@%pl0 mbarrier.arrive.shared::cta.b64 _, [%t0];')

    def limits(self, j):
        """compute %lim0,%lim1 and %pmask for block index reg j of tile (cm0)"""
        emit = self.emit
        emit(f'mul.lo.u32 %t0, {j}, {self.keys};')
        if self.causal:
            emit(
                'add.u32 %t1, %cm0, %wgrow;', 'add.u32 %t1, %t1, 1;', 'min.u32 %t1, %t1, %S;',
                f'add.u32 %t2, %t0, {self.keys};', 'setp.gt.u32 %pmask, %t2, %t1;',
            )
        else:
            emit(f'add.u32 %t2, %t0, {self.keys};', 'setp.gt.u32 %pmask, %t2, %S;')

    def mask_if_needed(self):
        emit = self.emit
        if not (self.causal or self.tail):
            return
        L = self.fresh('NM')
        emit(f'@!%pmask bra {L};')
        if self.causal:
            emit('mov.u32 %t6, %t0;')
            self.row_of_thread('%t1')
            emit('mov.u32 %t0, %t6;')
            emit(
                'add.u32 %t1, %cm0, %t1;', 'add.u32 %t2, %t1, 1;', 'add.u32 %t3, %t1, 9;', 'min.u32 %t2, %t2, %S;',
                'min.u32 %t3, %t3, %S;',
            )
        else:
            emit('mov.u32 %t2, %S;', 'mov.u32 %t3, %S;')
        emit(
            'mov.u32 %t4, %tid.x;', 'and.b32 %t4, %t4, 3;', 'shl.b32 %t4, %t4, 1;', 'add.u32 %t1, %t0, %t4;',
            'sub.s32 %lim0, %t2, %t1;', 'sub.s32 %lim1, %t3, %t1;',
        )
        self.mask()
        self.label(L)

    def skipped_blocks(self):
        """blocks this warpgroup needs; the rest of the tile's blocks (%nsk) are only released"""
        if not self.skips:
            return
        emit = self.emit
        emit(
            'add.u32 %t0, %cm0, %wgrow;', f'add.u32 %t0, %t0, {64 + self.keys - 1};', f'div.u32 %t0, %t0, {self.keys};',
            'min.u32 %t0, %t0, %n;', 'sub.u32 %nsk, %n, %t0;', 'mov.u32 %n, %t0;',
        )

    def skip_blocks(self, cnt, full, empty, idx, ph, st):
        emit = self.emit
        A = self.fresh('SK')
        B = self.fresh('SKE')
        self.label(A)
        emit(f'setp.eq.u32 %pw, {cnt}, 0;', f'@%pw bra {B};')
        self.barrier_address('%ba', full, idx, st)
        self.wait('%ba', ph)
        self.release(empty, idx, st)
        self.advance(idx, ph, st)
        emit(f'sub.u32 {cnt}, {cnt}, 1;', f'bra {A};')
        self.label(B)

    def query_operand(self):
        if self.query_in_registers:
            self.emit(f'mad.lo.u32 %t0, %qs, {self.query_bytes}, %ostbase;')
            for k in range(self.dim // 16):
                qr = ', '.join(('%%qr%d' % (4 * k + i) for i in range(4)))
                self.emit(
                    f'xor.b32 %t1, %t0, {2 * k % 8 * 16};',
                    f'ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {{{qr}}}, [%t1+{k // 4 * 64 * 128}];',
                )
            return
        self.emit(f'mul.lo.u32 %t0, %qs, {self.query_bytes >> 4};', 'add.u32 %qlo, %qwgd, %t0;')

    def consumer(self):
        emit = self.emit
        emit(f'setmaxnreg.inc.sync.aligned.u32 {self.consumer_registers};')
        emit(
            'sub.u32 %t0, %tidx, 128;', 'shr.u32 %wg, %t0, 7;', 'shfl.sync.idx.b32 %wg, %wg, 0, 31, -1;',
            'and.b32 %t1, %tidx, 127;', 'and.b32 %lane, %tidx, 31;', 'shr.u32 %warp, %t1, 5;',
            'setp.lt.u32 %pl0, %lane, 1;', 'and.b32 %t2, %lane, 3;', 'shl.b32 %col0, %t2, 1;',
            'shl.b32 %wgrow, %wg, 6;', 'shl.b32 %t3, %warp, 4;', 'add.u32 %row, %wgrow, %t3;', 'shr.u32 %t4, %lane, 2;',
            'add.u32 %row, %row, %t4;', 'add.u32 %barwg, %wg, 8;',
        )
        emit(
            f'mad.lo.u32 %owgbase, %wg, {self.warpgroup_bytes}, %sb;', 'shl.b32 %t3, %warp, 11;',
            'add.u32 %ostbase, %owgbase, %t3;', 'and.b32 %t3, %lane, 15;', 'shl.b32 %t3, %t3, 7;',
            'add.u32 %ostbase, %ostbase, %t3;', 'shr.u32 %t3, %lane, 4;', 'and.b32 %t4, %lane, 7;',
            'xor.b32 %t3, %t3, %t4;', 'shl.b32 %t3, %t3, 4;', 'add.u32 %ostbase, %ostbase, %t3;',
        )
        emit('mov.u32 %dhi, 1073741888;', 'mov.u32 %dvhi, 1073741888;')
        lbo = self.keys * 128 >> 4
        emit(
            'shr.u32 %t3, %owgbase, 4;', 'or.b32 %qwgd, %t3, 65536;', f'add.u32 %t3, %sb, {self.keys_at};',
            'shr.u32 %t3, %t3, 4;', 'or.b32 %kd, %t3, 65536;', f'add.u32 %t3, %sb, {self.values_at};',
            'shr.u32 %t3, %t3, 4;', f'or.b32 %vd, %t3, {lbo << 16};',
        )
        emit('setp.eq.u32 %ptrue, 0, 0;', 'setp.ne.u32 %pfalse, 0, 0;')
        emit('mul.f32 %nsc, %sc, 0fBF800000;')
        for r in ('k', 'v'):
            emit(f'mov.u32 %{r}i, 0;', f'mov.u32 %{r}ph, 0;')
        emit('mov.u32 %qs, 0;', 'mov.u32 %qph, 0;', 'mov.u32 %t0, 0;', 'mov.u32 %fpend, 0;', 'mov.u32 %fst2, 0;')
        pp = self.turns and self.warpgroups > 1
        if pp:
            emit(
                'add.u32 %bart, %wg, 1;', 'add.u32 %barn, %wg, 2;', f'setp.eq.u32 %pw, %wg, {self.warpgroups - 1};',
                '@%pw mov.u32 %barn, 1;',
            )
            L = self.fresh('TI')
            emit(f'@!%pw bra {L};', 'bar.arrive 1, 256;')
            self.label(L)

        def turn_wait():
            if pp:
                emit('bar.sync %bart, 256;')

        def turn_give():
            if pp:
                emit('bar.arrive %barn, 256;')

        def readinfo(qs, dst):
            emit(
                f'shl.b32 %t0, {qs}, 4;', 'add.u32 %t0, %t0, %sb;',
                f'ld.shared.v4.u32 {{{dst[0]}, {dst[1]}, {dst[2]}, %t1}}, [%t0+{self.info_at}];',
            )

        self.barrier_address('%ba', self.query_full, '%qs', 2)
        self.wait('%ba', '%qph')
        readinfo('%qs', ('%cm0', '%cbh', '%n'))
        emit('setp.eq.u32 %pw, %n, 0;', '@%pw bra $CEND;')
        self.skipped_blocks()
        self.query_operand()
        self.barrier_address('%ba', self.key_full, '%ki', self.key_stages)
        self.wait('%ba', '%kph')
        emit(f'mad.lo.u32 %klo, %ki, {self.stage_bytes >> 4}, %kd;')
        turn_wait()
        emit('wgmma.fence.sync.aligned;')
        self.scores('%qlo', '%klo')
        turn_give()
        emit('wgmma.wait_group.sync.aligned 0;')
        self.release(self.key_empty, '%ki', self.key_stages)
        self.advance('%ki', '%kph', self.key_stages)
        emit('mov.u32 %j, 0;')
        self.limits('%j')
        self.mask_if_needed()
        self.softmax(True)
        self.narrow_weights()
        emit('setp.ne.u32 %pz, 0, 0;')
        LOOP = self.fresh('LOOP')
        NOTLAST = self.fresh('NOTLAST')
        DRAIN = self.fresh('DRAIN')
        self.label(LOOP)
        emit('add.u32 %j, %j, 1;', 'setp.eq.u32 %plast, %j, %n;')
        NP = self.fresh('NP')
        emit('setp.ne.u32 %pw, %fpend, 0;', f'@!%pw bra {NP};')
        REL2 = self.fresh('R2')
        emit(
            'and.b32 %t1, %tidx, 127;', 'setp.eq.u32 %pwg0, %t1, 0;', f'@!%pwg0 bra {REL2};',
            'cp.async.bulk.wait_group.read 0;',
        )
        self.barrier_address('%t0', self.query_empty, '%qprev', 2)
        emit('mbarrier.arrive.shared::cta.b64 _, [%t0];')
        self.label(REL2)
        emit('mov.u32 %fpend, 0;')
        self.label(NP)
        emit(f'@!%plast bra {NOTLAST};')
        emit('mov.u32 %qprev, %qs;', 'mov.u32 %om0, %cm0;', 'mov.u32 %obh, %cbh;')
        if self.skips:
            emit('mov.u32 %onsk, %nsk;')
            self.skip_blocks('%nsk', self.key_full, self.key_empty, '%ki', '%kph', self.key_stages)
        self.advance('%qs', '%qph', 2)
        self.barrier_address('%ba', self.query_full, '%qs', 2)
        self.wait('%ba', '%qph')
        readinfo('%qs', ('%cm0', '%cbh', '%n'))
        emit('setp.eq.u32 %pw, %n, 0;', f'@%pw bra {DRAIN};')
        self.skipped_blocks()
        self.query_operand()
        emit(
            'mov.u32 %j, 0;', 'mov.f32 %ol0, %l0;', 'mov.f32 %ol1, %l1;', 'mov.f32 %onm0, %nm0;',
            'mov.f32 %onm1, %nm1;', f"mov.f32 %nm0, {f32(float('inf'))};", f"mov.f32 %nm1, {f32(float('inf'))};",
            'mov.f32 %l0, 0f00000000;', 'mov.f32 %l1, 0f00000000;',
        )
        self.label(NOTLAST)
        self.barrier_address('%ba', self.key_full, '%ki', self.key_stages)
        self.wait('%ba', '%kph')
        emit(
            f'mad.lo.u32 %klo, %ki, {self.stage_bytes >> 4}, %kd;',
            f'mad.lo.u32 %vlo, %vi, {self.stage_bytes >> 4}, %vd;',
        )
        self.barrier_address('%bb', self.value_full, '%vi', self.value_stages)
        turn_wait()
        emit('wgmma.fence.sync.aligned;')
        self.scores('%qlo', '%klo')
        PVP = self.fresh('PVP')
        if self.overlap:
            self.label(PVP)
        self.wait('%bb', '%vph')
        emit('wgmma.fence.sync.aligned;')
        self.output('%vlo', '%pz')
        turn_give()
        self.limits('%j')
        emit('mov.u32 %jm, %t0;')
        emit('wgmma.wait_group.sync.aligned 1;')
        if not self.optimistic:
            self.release(self.key_empty, '%ki', self.key_stages)
            self.advance('%ki', '%kph', self.key_stages)
        emit('mov.u32 %t0, %jm;')
        self.mask_if_needed()
        if self.optimistic:
            self.optimistic_softmax()
            self.release(self.key_empty, '%ki', self.key_stages)
            self.advance('%ki', '%kph', self.key_stages)
        else:
            self.softmax(False)
        NEPI = self.fresh('NEPI')
        JOIN = self.fresh('JOIN')

        def waitpv():
            emit('wgmma.wait_group.sync.aligned 0;')
            self.release(self.value_empty, '%vi', self.value_stages)

        emit(f'@!%plast bra {NEPI};')
        waitpv()
        if self.skips:
            self.advance('%vi', '%vph', self.value_stages)
            self.skip_blocks('%onsk', self.value_full, self.value_empty, '%vi', '%vph', self.value_stages)
        if self.overlap:
            if not self.skips:
                self.advance('%vi', '%vph', self.value_stages)
            self.narrow_weights()
            ONE = self.fresh('ONE')
            emit('setp.le.u32 %pw, %n, 1;', f'@%pw bra {ONE};')
            self.barrier_address('%ba', self.key_full, '%ki', self.key_stages)
            self.wait('%ba', '%kph')
            emit(f'mad.lo.u32 %klo, %ki, {self.stage_bytes >> 4}, %kd;')
            turn_wait()
            emit('wgmma.fence.sync.aligned;')
            self.scores('%qlo', '%klo')
            turn_give()
            self.epilogue(('%ol0', '%ol1'), ('%onm0', '%onm1'), '%om0', '%obh', '%qprev')
            emit(
                'mov.u32 %fpend, 1;', 'setp.ne.u32 %pz, 0, 0;', 'mov.u32 %j, 1;', 'setp.ne.u32 %plast, 0, 0;',
                f'mad.lo.u32 %vlo, %vi, {self.stage_bytes >> 4}, %vd;',
            )
            self.barrier_address('%bb', self.value_full, '%vi', self.value_stages)
            turn_wait()
            emit(f'bra {PVP};')
            self.label(ONE)
            self.epilogue(('%ol0', '%ol1'), ('%onm0', '%onm1'), '%om0', '%obh', '%qprev')
            emit('mov.u32 %fpend, 1;', 'setp.ne.u32 %pz, 0, 0;', f'bra {LOOP};')
        else:
            self.epilogue(('%ol0', '%ol1'), ('%onm0', '%onm1'), '%om0', '%obh', '%qprev')
        emit('mov.u32 %fpend, 1;', 'setp.ne.u32 %pz, 0, 0;')
        emit(f'bra {JOIN};')
        self.label(NEPI)
        waitpv()
        if self.skips:
            self.advance('%vi', '%vph', self.value_stages)
        emit('setp.eq.u32 %pz, 0, 0;')
        self.rescale()
        self.label(JOIN)
        if not self.skips:
            self.advance('%vi', '%vph', self.value_stages)
        self.narrow_weights()
        emit(f'bra {LOOP};')
        self.label(DRAIN)
        emit(f'mad.lo.u32 %vlo, %vi, {self.stage_bytes >> 4}, %vd;')
        self.barrier_address('%bb', self.value_full, '%vi', self.value_stages)
        turn_wait()
        self.wait('%bb', '%vph')
        emit('wgmma.fence.sync.aligned;')
        self.output('%vlo', '%pz')
        turn_give()
        emit('wgmma.wait_group.sync.aligned 0;')
        if self.skips:
            self.advance('%vi', '%vph', self.value_stages)
            self.skip_blocks('%onsk', self.value_full, self.value_empty, '%vi', '%vph', self.value_stages)
        self.epilogue(('%l0', '%l1'), ('%nm0', '%nm1'), '%om0', '%obh', '%qprev')
        if pp:
            L = self.fresh('TE')
            emit('setp.ne.u32 %pw, %wg, 0;', f'@%pw bra {L};', 'bar.sync 1, 256;')
            self.label(L)
        emit('and.b32 %t1, %tidx, 127;', 'setp.eq.u32 %pwg0, %t1, 0;', '@%pwg0 cp.async.bulk.wait_group 0;')
        if self.optimistic:
            emit('bra $CEND;')
            self.slow_paths()
        self.label('$CEND')

    def module(self):
        emit = self.emit
        out = [
            '.version 8.6', '.target sm_90a', '.address_size 64', '.extern .shared .align 1024 .b8 smem[];',
            '.visible .entry fa(',
        ]
        out += (
            [
                '    .param .align 64 .b8 tmq[128],', '    .param .align 64 .b8 tmk[128],',
                '    .param .align 64 .b8 tmv[128],', '    .param .align 64 .b8 tmo[128],', '    .param .u64 p_lse,',
                '    .param .u64 p_cnt,', '    .param .u32 p_S,', '    .param .u32 p_tph,', '    .param .u32 p_ntiles,',
                '    .param .u32 p_hg,', '    .param .f32 p_sc,', '    .param .u32 p_mg,', '    .param .u32 p_lh', ')',
                f'.maxntid {self.threads}, 1, 1', '.minnctapersm 1',
            ]
            + []
            + ['{']
        )
        out.append(f'    .reg .f32 %s<{self.score_registers}>;')
        out.append(f'    .reg .f32 %o<{self.output_registers}>;')
        out.append(f'    .reg .b32 %p<{self.weight_registers}>;')
        out.append(
            '    .reg .f32 %mm<2>, %mx<2>, %nm<2>, %l<2>, %a<2>, %y<2>, %e<2>, %ol<2>, %onm<2>, %bs<2>, %z<8>, %pc<6>, %sc, %nsc;'
        )
        out.append('    .reg .f32 %x00, %x01, %x02, %x03, %x10, %x11, %x12, %x13;')
        out.append(
            '    .reg .b32 %t<8>, %w<4>, %v<4>, %tidx, %sb, %qi, %ki, %vi, %qph, %kph, %vph, %tile, %nxt, %ntile, %nbh, %ntm0, %nn, %mg, %lh, %G, %ntiles, %tph, %hg, %S, %bh, %hzero, %tm0, %n, %j, %jm, %r0, %ba, %bb;'
        )
        out.append(
            '    .reg .b32 %wg, %lane, %warp, %col0, %wgrow, %row, %barwg, %bart, %barn, %owgbase, %ostbase, %orace, %dhi, %dvhi, %qwgd, %kd, %vd, %qlo, %klo, %vlo, %qs, %qprev, %cm0, %cbh, %om0, %obh, %lim0, %lim1, %uq, %uv, %crank, %fpend, %fst2, %nsk, %onsk, %kc, %vprev, %qcur, %fend, %ffirst, %fany, %xm0, %xbh, %xn;'
        )
        out.append(f'    .reg .f32 %sa<{self.keys // 4}>, %sb<{self.keys // 4}>;')
        out.append('    .reg .b16 %cmask;')
        out.append(f'    .reg .b32 %qr<{self.dim // 4}>;')
        out.append('    .reg .b64 %da, %db, %tmq, %tmk, %tmv, %tmo, %lsep, %cnt, %ad;')
        out.append(
            '    .reg .pred %pw, %pm, %pl0, %pwg0, %plq, %ptrue, %pfalse, %pz, %plast, %ppend, %prs, %prl, %pmask, %pst2, %pfst;'
        )
        emit('mov.u32 %tidx, %tid.x;')
        emit('mov.u32 %t0, smem;', 'add.u32 %t0, %t0, 1023;', 'and.b32 %sb, %t0, -1024;')
        for n in 'qkvo':
            emit(f'mov.b64 %da, tm{n};', f'cvta.param.u64 %tm{n}, %da;')
        emit(
            'ld.param.u64 %cnt, [p_cnt];', 'ld.param.u32 %S, [p_S];', 'ld.param.u32 %tph, [p_tph];',
            'ld.param.u32 %ntiles, [p_ntiles];', 'ld.param.u32 %hg, [p_hg];', 'ld.param.f32 %sc, [p_sc];',
        )
        emit('cvta.to.global.u64 %cnt, %cnt;')
        emit('setp.ne.u32 %pw, %tidx, 0;', '@%pw bra $INITD;')
        for i in range(2):
            emit(
                f'mbarrier.init.shared::cta.b64 [%sb+{self.query_full + 8 * i}], 1;',
                f'mbarrier.init.shared::cta.b64 [%sb+{self.query_empty + 8 * i}], {self.warpgroups};',
            )
        for i in range(self.key_stages):
            emit(
                f'mbarrier.init.shared::cta.b64 [%sb+{self.key_full + 8 * i}], 1;',
                f'mbarrier.init.shared::cta.b64 [%sb+{self.key_empty + 8 * i}], {4 * self.warpgroups * 1};',
            )
        for i in range(self.value_stages):
            emit(
                f'mbarrier.init.shared::cta.b64 [%sb+{self.value_full + 8 * i}], 1;',
                f'mbarrier.init.shared::cta.b64 [%sb+{self.value_empty + 8 * i}], {4 * self.warpgroups * 1};',
            )
        emit('fence.mbarrier_init.release.cluster;', 'fence.proxy.async.shared::cta;')
        self.label('$INITD')
        emit('bar.sync 0;')
        emit('setp.ge.u32 %pw, %tidx, 128;', '@%pw bra $CONS;')
        self.producer()
        self.label('$CONS')
        self.consumer()
        self.label('$EXIT')
        emit('ret;')
        return '\n'.join(out + self.lines + ['}']) + '\n'


REGISTERS = {'query_in_registers': True}
COUNTED = {'causal': True, 'counted': True}
SKIPS = {**COUNTED, 'skips': True, 'turns': False}
KERNELS = [
    Kernel('f128_n128', 128, 128, 2, **REGISTERS),
    Kernel('f128_n128v', 128, 128, 2, **REGISTERS, overlap=True),
    Kernel('f128_n80w3', 128, 80, 3, stages=3, tail=True),
    Kernel('f64_n64w2', 64, 64, 2),
    Kernel('f64_n64w4', 64, 64, 4, stages=5),
    Kernel('f64_n64w4v', 64, 64, 4, stages=5, overlap=True),
    Kernel('f64_n128w1', 64, 128, 1, stages=4, turns=False),
    Kernel('c128_n128', 128, 128, 2, **REGISTERS, **COUNTED),
    Kernel('c128_n64s', 128, 64, 2, stages=4, **REGISTERS, **SKIPS),
    Kernel('c64_n64w4', 64, 64, 4, stages=5, **COUNTED),
    Kernel('c64_n64w4s', 64, 64, 4, stages=5, **SKIPS),
    Kernel('c64_n128w1', 64, 128, 1, stages=4, turns=False, causal=True, optimistic=False),
    Kernel('b128_n128', 128, 128, 2, **REGISTERS, bf16=True),
    Kernel('b64_n64w4', 64, 64, 4, stages=5, bf16=True),
    Kernel('bc128_n128', 128, 128, 2, **REGISTERS, **COUNTED, bf16=True),
    Kernel('bc64_n64w4s', 64, 64, 4, stages=5, **SKIPS, bf16=True),
]

if __name__ == '__main__':
    for kernel in KERNELS:
        with open(os.path.join(sys.argv[1], f'hop_{kernel.name}.sm_90a.ptx'), 'w') as file:
            file.write(kernel.module())
