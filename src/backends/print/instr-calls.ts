/** Prints calls of declared instructions, and collects their requirements. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Memory } from '../../ir/instructions/instr.ts'
import type { CallPiece, InstrCall } from '../../ir/instructions/instr-call.ts'
import { stmtsOf, walkStmts } from '../../ir/statements/tree.ts'
import type { LaunchUse } from '../launch-uses.ts'
import type { Capability, PrintedModule } from '../module.ts'
import type { Spellings } from './spellings.ts'

/** The instruction in these launches that requires the newest device. */
export function newestRequirement(uses: readonly LaunchUse[], target: string): Pick<PrintedModule, 'needs'> {
  let needs: PrintedModule['needs']
  for (const s of uses.flatMap(({ launch }) => stmtsOf(launch.body, 'instr'))) {
    const version = s.texts.find((t) => t.target === target)?.from ?? 0
    if (version > (needs?.version ?? 0)) needs = { instr: s.instr, version, span: s.span }
  }
  return needs ? { needs } : {}
}

/** Capabilities that the instructions and memories of a launch require of the target and its device. */
export function capabilitiesOf({ launch }: LaunchUse, target: string): readonly Capability[] {
  const out = new Map<string, Capability>()
  const add = (requiredBy: string, needs: readonly string[] | undefined, span: Capability['span']): void => {
    for (const name of needs ?? []) if (!out.has(name)) out.set(name, { name, by: requiredBy, span })
  }
  walkStmts(launch.body, (s) => {
    if (s.kind === 'instr') add(s.instr, s.texts.find((t) => t.target === target)?.needs, s.span)
    const memory = s.kind === 'alloc' ? s.buffer.memory : undefined
    if (memory?.opaque)
      add(memory.name, memory.opaque.types.find((t) => t.target === target)?.needs, memory.span)
  })
  return [...out.values()]
}

/** The type of a tile memory on the target. @throws SptError `emit/no-instruction` if it declares none */
export function typeText(memory: Memory, target: string): string {
  const types = memory.opaque?.types ?? []
  const text = types.find((t) => t.target === target)
  if (text) return text.parts.join('')
  return failWith('emit/no-instruction', `memory ${memory.name} has no type for ${target}`, {
    ...(memory.span && { span: memory.span }),
    expected: `a device of ${types.map((t) => t.target).join(' or ')}`,
    hint: `give ${memory.name} a type for ${target}, or use another schedule there`,
  })
}

/** Source of an instruction call for the target; `piece` prints its operands. */
export function callText(
  s: InstrCall,
  target: Spellings,
  piece: (p: Exclude<CallPiece, string>) => string,
): readonly string[] {
  const text = s.texts.find((t) => t.target === target.name)
  if (!text)
    return failWith('emit/no-instruction', `instruction ${s.instr} has no text for ${target.name}`, {
      ...(s.span && { span: s.span }),
      expected: `a device of ${s.texts.map((t) => t.target).join(' or ')}`,
      hint: `give ${s.instr} a text for ${target.name}, or use another schedule there`,
    })
  const lines = text.pieces
    .map((p) => (typeof p === 'string' ? p : piece(p)))
    .join('')
    .split('\n')
    .map((l) => l.trim())
  return lines.filter((l) => l !== '')
}
