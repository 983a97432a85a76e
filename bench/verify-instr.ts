/**
 * The generated tests of declared instructions on a device: every instruction of `kernels/instructions/` (or of the
 * files given) against the reference, as `spt check --device` does it, and, with the elements of each register memory in
 * other slots, whether a wrong declaration is found.
 *
 *   node dist/bench/verify-instr.js [--device cuda] [FILE.spt …]
 *
 * Those that have no text for the device are left out, and those that it lacks are named. Exits with 1 where a
 * declaration is wrong, or a mistaken one passes.
 */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { InstructionVerifier } from '../src/instruction-tests/instruction-verify.ts'
import { devices, load } from '../src/node.ts'
import { mistaken, movable } from './mistaken-instructions.ts'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { device: { type: 'string', default: 'cuda' } },
})
const target = options.device === 'webgpu' ? 'wgsl' : options.device === 'cpu' ? 'js' : 'cuda'
const verifier = new InstructionVerifier(() =>
  target === 'cuda'
    ? devices.cuda()
    : target === 'js'
      ? devices.cpu()
      : devices.webgpu({
          toggles: ['allow_unsafe_apis'],
          features: ['chromium-experimental-subgroup-matrix'],
        }),
)
const lines = (first: string, why: readonly string[]): string => [first, ...why].join('\n         ')

const device = await verifier.device()
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
    const { kind, why } = await verifier.verify(instr, all)
    if (kind === 'wrong') wrong++
    console.log(lines(`${(kind === 'wrong' ? 'WRONG' : kind).padEnd(8)} ${name}`, why))
    for (const operand of kind === 'right' ? movable(instr) : []) {
      const found = await verifier.verify(mistaken(instr, operand), all)
      if (found.kind !== 'wrong') wrong++
      const said = found.kind === 'wrong' ? 'found' : 'MISSED'
      console.log(
        `${said.padEnd(8)} ${name} with elements of ${operand} in other slots: ${found.why.join('; ')}`,
      )
    }
  }
}
await verifier[Symbol.asyncDispose]()
process.exitCode = wrong > 0 ? 1 : 0
