/** Deletes trials, and studies without any trial left. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { Connection } from './connection.ts'
import { placeholders } from './queries.ts'
import type { Cell } from './rows.ts'
import type { PruneOptions } from './types.ts'

/** @throws SptError `records/prune` if no option selects trials */
export function checkPicks({ olderThan, keepBest, studies }: PruneOptions): void {
  if (olderThan === undefined && keepBest === undefined && studies === undefined)
    fail({
      code: 'records/prune',
      message: 'everything would be forgotten',
      expected: 'olderThan, keepBest or studies',
      hint: 'remove the file to forget everything',
    })
}

/** Within a transaction; gives how many trials. */
export function forgotten(db: Connection, { olderThan, keepBest, studies }: PruneOptions): number {
  const conditions = [studies ? `study IN (${placeholders(studies)})` : '1']
  const values: Cell[] = [...(studies ?? [])]
  if (olderThan !== undefined) {
    conditions.push('time < ?')
    values.push(olderThan)
  }
  if (keepBest !== undefined) {
    conditions.push(`id NOT IN (SELECT id FROM (
      SELECT id, row_number() OVER (PARTITION BY study ORDER BY median, rowid) AS place
      FROM trials WHERE status = 'measured') WHERE place <= ?)`)
    values.push(keepBest)
  }
  const isWholeStudy = conditions.length === 1
  if (!isWholeStudy) conditions.push("status <> 'wrong'")
  const deleted = db
    .prepare(`DELETE FROM trials WHERE ${conditions.join(' AND ')} RETURNING study`)
    .all(...values) as { readonly study: string }[]
  // Not those that somebody has just begun.
  const deleteEmpty = db.prepare('DELETE FROM studies WHERE id = ? AND id NOT IN (SELECT study FROM trials)')
  for (const id of new Set([...deleted.map((t) => t.study), ...(isWholeStudy ? studies! : [])]))
    deleteEmpty.run(id)
  return deleted.length
}
