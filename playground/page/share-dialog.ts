/** The dialog with the link to the page's state. */
import { byId, number } from './dom.ts'

/** Links above this length are cut by some programs. */
const LONG = 8000

/** `complete`: false if the file of the matrix is too large for the link. */
export function openShareDialog(complete: boolean, matrix: string): void {
  const dialog = byId<HTMLDialogElement>('share-dialog')
  const link = byId<HTMLInputElement>('link')
  const note = byId('share-note')
  link.value = location.href
  note.textContent = !complete
    ? `The link does not contain ${matrix}, which is too large: send the file, too.`
    : link.value.length > LONG
      ? `The link has ${number(link.value.length)} characters. Some programs cut long links.`
      : ''
  byId('copy').onclick = async () => {
    try {
      await navigator.clipboard.writeText(link.value)
      note.textContent = 'Copied.'
    } catch {
      link.select()
      note.textContent = 'The browser does not permit this page to copy: press Ctrl+C.'
    }
  }
  dialog.showModal()
  link.select()
}
