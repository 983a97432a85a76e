/** Calls of declared instructions as text. */
import { fail } from '../ast/diagnostic.ts'
import type { CallPiece, InstrCall } from '../ir/loops.ts'
import { walkStmts } from '../ir/tree.ts'
import type { LaunchUse } from './emit.ts'
import type { ModuleText } from './module.ts'
import type { Target } from './target.ts'

/** The instruction in these launches that asks for the newest device. */
export function newest(uses: readonly LaunchUse[], target: string): Pick<ModuleText, 'needs'> {
  let needs: ModuleText['needs']
  for (const { launch } of uses)
    walkStmts(launch.body, (s) => {
      const from = s.kind === 'instr' ? (s.texts.find((t) => t.target === target)?.from ?? 0) : 0
      if (s.kind === 'instr' && from > (needs?.version ?? 0))
        needs = { instr: s.instr, version: from, span: s.span }
    })
  return needs ? { needs } : {}
}

/** The text for the target, with `piece` for what it mentions. */
export function callText(
  s: InstrCall,
  target: Target,
  piece: (p: Exclude<CallPiece, string>) => string,
): readonly string[] {
  const text = s.texts.find((t) => t.target === target.name)
  if (!text)
    return fail({
      code: 'emit/no-instruction',
      message: `instruction ${s.instr} has no text for ${target.name}`,
      ...(s.span ? { span: s.span } : {}),
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
