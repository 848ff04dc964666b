package app

// eraseSettle is how long servers may take to notice that the rights of a user have ended: a poll of
// keyPoll, and streams that look at the rights of their readers every few seconds.
const eraseSettle = 5 * keyPoll
