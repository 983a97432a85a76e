/** Schedules of called kernels: a call under the callee's schedule has its results, and the text of the steps written out. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { resultOrError, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { calling } from '../support/calling-kernel.ts'
import { Choices } from '../support/choices.ts'
import { Skipped } from '../support/compared.ts'
import { generate } from '../support/program-gen.ts'
import { readSample } from '../support/read-sample.ts'
import { schedule } from '../support/schedule-gen.ts'
import { bind, expectedOf } from './agree.ts'
import { agreeInCases, agreeOnWebGpu, type Case } from './property-cases.ts'

let webgpu: Device

beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(async () => {
  await webgpu.dispose()
})

const CALL = /^ {2}call (.*) = (callee_q\(.*\))$/m
/** A call for other results, in front of a call. */
const again = (_: string, results: string, call: string): string =>
  `  call ${results.replace(/\w+/g, '$&_other')} = ${call} as first\n  call ${results} = ${call} as second`

/** A kernel that only calls another one, once or twice, under a random schedule of the callee. */
function inCall(choices: readonly number[], steps: number): Case {
  const c = new Choices(choices)
  const sample = generate(c)
  const skipping = <T>(make: () => T): T => {
    try {
      return make()
    } catch (e) {
      throw e instanceof SptError ? new Skipped(e.diagnostics[0]!.code) : e
    }
  }
  const once = skipping(() => calling(sample.text))
  if (once === null) throw new Skipped('names')
  // The loops and copies of another call have the same names, so the compiler numbers those of the scheduled call.
  const isTwice = !/\binout\b/.test(once) && c.chance(50)
  const text = isTwice ? once.replace(CALL, again) : once
  const { formats } = skipping(() => readSample(sample))
  const program = skipping(() => parseProgram(text))
  const name = program.kernels.find((k) => k !== 'callee_q')!
  for (const own of ['callee_q', name]) skipping(() => program.kernel(own).compilation.loops)
  const drawn = schedule(c, program.kernel('callee_q').compilation, formats, steps)
  const declared = `${text}
    schedule callee_q.drawn { ${drawn.trace.join('\n')} }
    schedule ${name}.used { use callee_q.drawn ${isTwice ? 'at second' : ''} }`
  // A drawn step on loops may have the text of a step on coordinates, which is another step where it is the first.
  skipping(() => parseProgram(declared).kernel('callee_q').schedule('drawn'))
  const used = resultOrError(() => parseProgram(declared).kernel(name).schedule('used'))
  if (used instanceof SptError) throw used
  const written = parseProgram(`${text} schedule ${name}.written { ${used.trace.join('\n')} }`)
  const { compilation } = written.kernel(name).schedule('written')
  expect(used.compilation.texts('js')).toEqual(compilation.texts('js'))
  expect(used.trace).toHaveLength(drawn.trace.length)
  const expected = expectedOf(sample, program.kernel(name).compilation)
  return {
    sample: { ...sample, text: declared },
    scheduled: { ...drawn, compilation: used.compilation },
    compilation: used.compilation,
    bound: bind(sample, used.compilation),
    expected,
  }
}

test('every stage and the cpu agree with the reference, under the schedule of a callee', async () => {
  await agreeInCases(createCpuDevice(), (choices) => inCall(choices, 12), 40)
})

test('webgpu agrees with the reference, under the schedule of a callee', async () => {
  await agreeOnWebGpu(webgpu, (choices) => inCall(choices, 8), 8)
})
