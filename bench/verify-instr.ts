/**
 * The generated tests of declared instructions on a device: every instruction of `kernels/instructions/` (or of the
 * files given) against the reference, and, with the elements of each register memory in other slots, whether a wrong
 * declaration is found.
 *
 *   node dist/bench/verify-instr.js [--device cuda] [FILE.spt …]
 *
 * Those that have no text for the device, or that it lacks, are named. Exits with 1 where a declaration is wrong, or a
 * mistaken one passes.
 */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { instructionTest, mistaken, movable } from '../src/api/instruction-test.ts'
import { SptError } from '../src/ast/diagnostic.ts'
import type { Instr } from '../src/ir/instr.ts'
import { devices, load } from '../src/node.ts'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { device: { type: 'string', default: 'cuda' } },
})
const target = options.device === 'webgpu' ? 'wgsl' : 'cuda'
const device =
  target === 'cuda'
    ? await devices.cuda()
    : await devices.webgpu({
        toggles: ['allow_unsafe_apis'],
        features: ['chromium-experimental-subgroup-matrix'],
      })
console.log(device.name)
// What texts can ask for.
console.log([...device.features].filter((f) => f.includes('(')).join(', '))
const folder = 'kernels/instructions'
const files = positionals.length > 0 ? positionals : (await readdir(folder)).map((f) => join(folder, f))
let wrong = 0
for (const file of files) {
  const program = await load(file)
  const all = [...program.instructions.values()]
  for (const [name, instr] of program.instructions) {
    if (!instr.texts.some((t) => t.target === target)) continue
    const said = await problemsOf(instr, all)
    if (said.some((s) => s.startsWith('device/no-instruction'))) {
      console.log(`lacks  ${name}: ${said.join('\n       ')}`)
      continue
    }
    if (said.length > 0) wrong++
    console.log(
      `${said.length > 0 ? 'WRONG ' : 'ok    '} ${name}${said.map((s) => `\n       ${s}`).join('')}`,
    )
    for (const operand of said.length > 0 ? [] : movable(instr)) {
      const found = await problemsOf(mistaken(instr, operand), all)
      if (found.length === 0) wrong++
      const first = found[0] ? `: ${found[0]}` : ''
      console.log(
        `${found.length > 0 ? 'found ' : 'MISSED'} ${name} with elements of ${operand} in other slots${first}`,
      )
    }
  }
}
await device.dispose()
process.exitCode = wrong > 0 ? 1 : 0

async function problemsOf(instr: Instr, all: readonly Instr[]): Promise<readonly string[]> {
  try {
    const { kernel, inputs } = instructionTest(instr, all)
    const compiled = await kernel.compile(device)
    const prepared = await compiled.prepare(inputs)
    const v = await prepared.verify()
    prepared.free()
    compiled.release()
    // Data are integers: sums are exact in any order.
    return v.problems.length > 0 || v.maxAbsoluteError === 0
      ? v.problems
      : [`results differ by up to ${v.maxAbsoluteError}`]
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    return error.diagnostics.map((d) => `${d.code}: ${d.message}`)
  }
}
