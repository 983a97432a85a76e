/** The verifiers and interpreters for users: what they find is a diagnostic that says where, and costs nothing unasked. */
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { int, variable } from '../../src/ir/expressions/expr.ts'
import type { Body } from '../../src/ir/statements/tree.ts'
import { rewriteStmts, stmt } from '../../src/ir/statements/tree.ts'
import { LAUNCH_PASSES, LOOP_PASSES, PASSES } from '../../src/lower/passes.ts'
import { InternalError, load } from '../../src/node.ts'
import { LOOP_STEPS } from '../../src/schedule/primitives.ts'
import { MILESTONES } from '../../src/verifiers/stage3.ts'
import { Folder, PROGRAM, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())
afterEach(() => vi.restoreAllMocks())
const program = folder.file('mul.spt', PROGRAM)
const STAGES = ['check', program, '--verify-stages']

/** The pass goes on to do what `mistake` makes of its result. */
function broken(name: string, mistake: (body: Body) => Body): void {
  const pass = LAUNCH_PASSES.find((p) => p.name === name)!
  const run = pass.run
  vi.spyOn(pass, 'run').mockImplementation((body, c) => mistake(run(body, c)))
}

const numbered = (pass: string): string => `${pass} (${PASSES.indexOf(pass) + 1} of ${PASSES.length})`

/** A name that nothing binds. */
const unbound = (body: Body): Body => [
  stmt({ kind: 'let', name: 'x', dtype: 'i32', value: variable('nowhere') }),
  ...body,
]

/** Loops one round short: an invariant of no stage, and a wrong result. */
const short = (body: Body): Body =>
  rewriteStmts(body, {
    stmt: (s) => (s.kind === 'for' && s.extent.kind === 'var' ? stmt({ ...s, extent: int(1) }) : undefined),
  })

describe('spt check --verify-stages', () => {
  test('runs every kernel under every schedule, and lists them', async () => {
    const { code, out, err } = await spt(STAGES)
    expect([code, err]).toEqual([0, ''])
    const ran = 'loops, wgsl, cuda, js/c, subgroups'
    expect(folder.plain(out)).toBe(
      `FOLDER/mul.spt: ok, kernel mul (schedules gpu, blocks)
  agrees   mul: ${ran}
  agrees   mul in parallel: ${ran}
  agrees   mul.gpu: ${ran}
`,
    )
  })

  test('reports a schedule with insufficient capacity as untested, with the reason', async () => {
    const text = `${PROGRAM.replace(/schedule[\s\S]*/, '')}
      kernel sum(m: size, n: size) {
        axis i = dense_fixed(m)
        axis j = dense_fixed(n)
        buffer A: f32[i, j] in
        buffer y: f32[i] out
        iterate rows [i, j] as SR { y[i] += A[i, j] }
      }
      format held over (i, j) {
        axis io = dense_fixed(i)
        axis jo = sparse_variable(io, j)
        map (i, j) -> (i, j)
        inverse (io, jo) -> (io, jo)
      }
      schedule sum.scarce { A as held live in place capacity 1 }`
    const { code, out } = await spt(['check', folder.file('scarce.spt', text), '--verify-stages'])
    expect(code).toBe(0)
    expect(out).toMatch(/untested sum\.scarce: loops, .*: sum has \d+ positions of jo, and the capacity is 1/)
  })

  test.each(['attention', 'segment-reduce'])('kernels/%s.spt', async (name) => {
    const { code, out, err } = await spt(['check', `sparsetile/kernels/${name}.spt`, '--verify-stages'])
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain('  agrees   ')
  })

  test('names the pass that breaks an invariant, with its number and stage', async () => {
    broken('common-subexpressions', unbound)
    const { code, err } = await spt(STAGES)
    expect(code).toBe(1)
    expect(err).toContain(`error[compiler/internal]`)
    expect(err).toContain(
      `stage 3 of kernel mul, after pass ${numbered('common-subexpressions')}: mul_0: nowhere: not bound here`,
    )
  })

  test('detects a pass that changes the result, under each schedule', async () => {
    broken('code-sinking', short)
    const { code, out, err } = await spt(STAGES)
    expect([code, out]).toEqual([1, ''])
    for (const what of ['kernel mul', 'kernel mul under schedule gpu'])
      expect(err).toMatch(
        new RegExp(
          `stage 3 of ${what} for wgsl, run on small data: C\\[\\d+, \\d+\\] is \\S+, the reference has `,
        ),
      )
  })

  test('detects loops that compute a different result', async () => {
    const { apply } = LOOP_STEPS.split
    vi.spyOn(LOOP_STEPS.split, 'apply').mockImplementation((cx, step) => {
      const outcome = apply(cx, step)
      return { ...outcome, body: short(outcome.body) }
    })
    const { code, err } = await spt(STAGES)
    expect(code).toBe(1)
    expect(err).toContain('stage 2 of kernel mul under schedule gpu, run forward on small data: C[')
  })
})

describe('SPT_VERIFY=1', () => {
  const emit = (env: Record<string, string>) =>
    spt(['emit', program, '--schedule', 'gpu', '--target', 'wgsl'], { env })

  test('names the step of a schedule that breaks an invariant', async () => {
    const { apply } = LOOP_STEPS.split
    vi.spyOn(LOOP_STEPS.split, 'apply').mockImplementation((cx, step) => {
      const outcome = apply(cx, step)
      return { ...outcome, body: [...outcome.body, ...outcome.body] }
    })
    const { code, err } = await emit({ SPT_VERIFY: '1' })
    expect(code).toBe(1)
    expect(err).toContain('stage 2 of kernel mul under schedule gpu, after step split (2 of 4): ')
    expect(err).toContain('is bound twice')
  })

  test('names the pass, in every command; unset, nothing is verified', async () => {
    const pass = LOOP_PASSES.find((p) => p.name === 'loop-bound-tightening')!
    const { run } = pass
    vi.spyOn(pass, 'run').mockImplementation((k, options) => {
      const made = run(k, options)
      return { ...made, buffers: [...made.buffers, made.buffers[0]!] }
    })
    const { code, err } = await emit({ SPT_VERIFY: '1' })
    expect(code).toBe(1)
    expect(err).toContain(
      `stage 2 of kernel mul under schedule gpu, after pass ${numbered('loop-bound-tightening')}: mul: buffer A occurs twice`,
    )
    expect(await emit({})).toMatchObject({ code: 0, err: '' })
  })
})

describe('load', () => {
  test('with `verify`, reports the same for kernels built by steps', async () => {
    broken('buffer-flattening', unbound)
    const kernel = (await load(PROGRAM, { verify: true })).kernel().split('i', 2, ['io', 'ii'])
    expect(() => kernel.emit('js')).toThrow(InternalError)
    expect(() => kernel.emit('js')).toThrow(
      `stage 3 of kernel mul, after pass ${numbered('buffer-flattening')}: `,
    )
    expect(() => kernel.reorder('ii', 'io')).not.toThrow()
    expect((await load(PROGRAM)).kernel().emit('js')).toHaveLength(1)
  })

  test('takes a truth value', async () => {
    await expect(load(PROGRAM, { verify: 1 as never })).rejects.toThrow(SptError)
  })
})

test('stages of the verifier are passes', () => {
  for (const m of MILESTONES) expect(PASSES).toContain(m)
})

test('a kernel without comparable elements is reported as untested', async () => {
  const path = folder.file(
    'undecided.spt',
    `kernel undecided(n: size) {
      axis i = dense_fixed(n)
      buffer A: f32[i] in
      buffer S: f32[] local
      buffer Y: f32[i] out
      iterate sum [i] as R { S[] += A[i] - A[i] * 1.0001 }
      iterate use [i] as S { Y[i] = floor(A[i] / (S[] - S[])) }
    }`,
  )
  const { code, out } = await spt(['check', path, '--verify-stages'])
  expect(code).toBe(0)
  expect(out).toContain('every element is decided by rounding: none was compared')
  expect(out).not.toContain('agrees')
})
