/** The pages of docs/how-to: their blocks run. */
import { executes } from './site.ts'

executes('docs/how-to')
