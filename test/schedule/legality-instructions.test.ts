/**
 * What the checks of declared instructions prevent (`legality.test.ts`, of all others): the interpreter of plans runs
 * them on devices which say what they do, and what a real one may do to programs that the check refuses.
 */
import { expect, test, vi } from 'vitest'
import { answeringYes, yes } from '../support/disabled-checks.ts'

vi.mock('../../src/ast/diagnostics/diagnostic.ts', async (original) => {
  const support = await import('../support/disabled-checks.ts')
  return support.answering(await original<typeof import('../../src/ast/diagnostics/diagnostic.ts')>())
})

import { dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { interpretPlan } from '../../src/interpret/stage3.ts'
import type { Instructions } from '../../src/interpret/thread-code.ts'
import { builtin, constant, int, load, lt } from '../../src/ir/expressions/expr.ts'
import type { Kernel2, Stmt } from '../../src/ir/statements/loops.ts'
import { store, when } from '../../src/ir/statements/statement-builders.ts'
import { rewriteStmts } from '../../src/ir/statements/tree.ts'
import { lowerToMemory } from '../../src/lower/pipeline.ts'
import type { Kernel } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { gather, gatherInputs } from '../lower/tma-gathers.ts'
import { inputsOf, scheduled, scheduledBy } from '../lower/tma-products.ts'
import { AsyncProxy, PROXIED } from '../support/async-proxy.ts'
import { Device } from '../support/asynchronous.ts'
import { sample } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'

type Wrong = 'values' | 'race' | 'wait'

/** A scheduled kernel, and what its loops are made into before they are lowered. */
interface Made {
  readonly kernel: Kernel
  readonly inputs: Inputs
  readonly changed?: (loops: Kernel2) => Kernel2
}

/** What is wrong with what the plan computes into `C`. */
function wrongWith({ kernel, inputs, changed = (x) => x }: Made, device: Instructions): Wrong | undefined {
  const { source, loops } = kernel.compilation
  const { C } = reference(source, referenceInputs(source, bindInputs(source, inputs))).buffers
  const bound = bindInputs(kernel.compilation.kernel, inputs)
  const memory = new Map([...bound.arrays].map(([name, values]) => [name, Array.from(values, Number)]))
  memory.set('C', new Array<number>(C!.values.length).fill(Number.NaN))
  const plan = lowerToMemory(changed(loops))
  try {
    interpretPlan(plan, memory, bound.params, device)
    if (device instanceof Device) device.end()
  } catch (e) {
    const { message } = e as Error
    if (/while it arrives|races/.test(message)) return 'race'
    if (/a phase that does not end|left in a phase|was over long ago/.test(message)) return 'wait'
    throw e
  }
  return memory.get('C')!.every((x, e) => x === C!.values[e]) ? undefined : 'values'
}

/** Something else in place of each instruction, which no schedule writes. */
const onInstructions =
  (instead: (s: Stmt) => Stmt) =>
  (loops: Kernel2): Kernel2 => ({
    ...loops,
    body: rewriteStmts(loops.body, {
      stmt: (s) => (s.kind === 'for' && s.mode.kind === 'instr' ? [instead(s)] : undefined),
    }),
  })

/** Sums of tiles by four threads together. */
const together = (): Made => ({
  kernel: scheduled({ kernel: 'product', a: 'plain', b: 'plain', ordered: true, again: false, stages: 0 }),
  inputs: inputsOf('product', 1, 2, 1).inputs,
})

const sparse = (steps: string): Made => ({
  kernel: scheduledBy(
    'blocks',
    `require d % 8 == 0
    split bi by 2 -> (wi, ir)
    split f by 8 -> (fo, fi)
    split fi by 4 -> (jt, jr)
    ${steps}
    split As.wi by 2 -> (ac, ar)
    tensorize ar with bulk`,
  ),
  inputs: inputsOf('blocks', 3, 5, 1).inputs,
})
const SHARED_OUT = `bind i to block.y, fo to block.x, wi to thread.y, jr to thread.x
    cache_write C at jr in register`

/** Rows twice, read through the async proxy from copies that `put` makes. */
const copied = (put: string): Made => ({
  kernel: parseProgram(`${PROXIED}
kernel k(m: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(4)
  buffer A: f32[i, j] in
  buffer C: f32[i, j] out
  iterate double [i, j] as SS { C[i, j] = A[i, j] + A[i, j] }
}
schedule k.s { bind i to block.x  cache_read A at i in shared -> As  tensorize double.j with twice  ${put} }`)
    .kernel('k')
    .schedule('s'),
  inputs: { tensors: { A: dense([2, 4], Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8)) }, params: { m: 2 } },
})

interface Illegal {
  readonly code: string
  readonly wrong: Wrong
  readonly why: string
  /** What is alike and allowed, which is right on the same device. */
  readonly legal: () => Made
  readonly made: () => Made
  readonly device?: () => Instructions
}

const ILLEGAL: readonly Illegal[] = [
  {
    code: 'divergent-instruction',
    wrong: 'values',
    why: 'threads that do not come leave their part of a product out',
    legal: together,
    made: () => ({
      ...together(),
      changed: onInstructions((s) => when(lt(builtin('thread.x'), int(2)), [s])),
    }),
  },
  {
    code: 'counted-copies',
    wrong: 'wait',
    why: 'threads of a row that is shorter copy nothing, and all wait for their bytes',
    legal: () => ({ kernel: gather(1, true), inputs: gatherInputs([1, 3]) }),
    made: () => ({ kernel: gather(2, true, 0), inputs: gatherInputs([1, 3]) }),
  },
  {
    code: 'counted-copies',
    wrong: 'wait',
    why: 'no number is that of the bytes of two blocks and of the one that is left',
    legal: () =>
      sparse(`reorder (i, fo, wi, jr, j, jt, ir, bk)
        ${SHARED_OUT}
        cache_read A at j in tile -> As
        pipeline j by 2`),
    made: () =>
      sparse(`split j by 2 -> (jo, js)
        reorder (i, fo, wi, jr, jo, js, jt, ir, bk)
        ${SHARED_OUT}
        cache_read A at jo in tile -> As
        pipeline jo by 2`),
  },
  {
    code: 'counted-copies',
    wrong: 'race',
    why: 'a store meets the copy that is under way',
    legal: () => ({ kernel: gather(1, true), inputs: gatherInputs([1, 3]) }),
    made: () => ({
      kernel: gather(1, true),
      inputs: gatherInputs([1, 3]),
      changed: onInstructions((s) =>
        when(lt(builtin('thread.x'), int(1)), [s, store('Bs', [int(0), int(0), int(0)], constant(0, 'f32'))]),
      ),
    }),
  },
  {
    code: 'counted-copies',
    wrong: 'wait',
    why: 'bytes are waited for that data keeps from being copied',
    legal: () => ({ kernel: gather(1, true), inputs: gatherInputs([1, 3]) }),
    made: () => ({
      kernel: gather(1, true),
      inputs: gatherInputs([1, 3]),
      changed: onInstructions((s) => when(lt(load('j_indices', [int(3)], 'index'), int(1)), [s])),
    }),
  },
  ...['tensorize As.j with put', ''].map((put) => ({
    code: 'unfenced',
    wrong: 'values' as const,
    why: `the async proxy does not see what ${put ? 'an instruction' : 'a store'} wrote before`,
    legal: () => copied('tensorize As.j with put_fenced'),
    made: () => copied(put),
    device: () => new AsyncProxy(),
  })),
]

/** Others in every run: what a check prevents takes seconds to show. */
test.each(sample(ILLEGAL, 9))('$code prevents: $wrong ($why)', ({ code, wrong, legal, made, device }) => {
  const on = device ?? (() => new Device(1))
  expect(wrongWith(legal(), on())).toBeUndefined()
  expect(refusal(() => wrongWith(made(), on())).code).toBe(`schedule/${code}`)
  expect(answeringYes(code, () => wrongWith(made(), on()))).toBe(wrong)
  expect(yes.asked).toBeGreaterThan(0)
})
