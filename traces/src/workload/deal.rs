//! Who talks about what: the documents of a trace, dealt to users by label.

use std::collections::BTreeMap;

use rand_pcg::Pcg64Mcg;

use super::Repeat;
use crate::draw;
use crate::sequence::Sequence;

/// Sequences about the same thing.
#[derive(Debug, Clone)]
pub(super) struct Document<'a> {
    /// The label of its first sequence.
    pub(super) label: &'a str,
    /// Their indices in the trace: those that ran, then the others.
    sequences: Vec<usize>,
    ran: usize,
}

/// The documents in the order in which they first come in the trace.
pub(super) fn documents(sequences: &[Sequence]) -> Vec<Document<'_>> {
    let mut documents: Vec<Document<'_>> = Vec::new();
    let mut known: BTreeMap<u32, usize> = BTreeMap::new();
    for (index, sequence) in sequences.iter().enumerate() {
        let next = documents.len();
        let at = sequence.document.map_or(next, |number| *known.entry(number).or_insert(next));
        if at == next {
            documents.push(Document { label: &sequence.label, sequences: Vec::new(), ran: 0 });
        }
        documents[at].sequences.push(index);
    }
    documents
}

impl Document<'_> {
    /// A sequence that has not run, if there is one, else one that has.
    fn run(&mut self, random: &mut Pcg64Mcg) -> (usize, Repeat) {
        let left = self.sequences.len() - self.ran;
        if left == 0 {
            let again = draw::below(random, self.ran);
            return (self.sequences[again], Repeat::SameSequence);
        }
        let chosen = self.ran + draw::below(random, left);
        self.sequences.swap(self.ran, chosen);
        self.ran += 1;
        let repeat = if self.ran == 1 { Repeat::New } else { Repeat::SameDocument };
        (self.sequences[self.ran - 1], repeat)
    }
}

/// A user's documents of one label: those that they had, then the others.
#[derive(Debug)]
struct Topic<'a> {
    documents: Vec<Document<'a>>,
    had: usize,
}

impl Topic<'_> {
    /// Documents that they had, or those that they did not.
    fn choices(&self, had: bool) -> usize {
        if had { self.had } else { self.documents.len() - self.had }
    }
}

/// A user, their documents, and how far they are.
#[derive(Debug)]
pub(super) struct User<'a> {
    topics: Vec<Topic<'a>>,
    /// Conversations in all, and those that are over.
    conversations: usize,
    over: usize,
}

/// Deals the documents to as many users, who share `length` conversations.
pub(super) fn deal<'a>(
    mut documents: Vec<Document<'a>>,
    users: usize,
    length: usize,
    random: &mut Pcg64Mcg,
) -> Vec<User<'a>> {
    let mut ranks: BTreeMap<&str, usize> = BTreeMap::new();
    for document in &documents {
        let next = ranks.len();
        ranks.entry(document.label).or_insert(next);
    }
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    draw::shuffle(random, &mut order);
    draw::shuffle(random, &mut documents);
    documents.sort_by_key(|document| order[ranks[document.label]]);
    let count = documents.len();
    let mut documents = documents.into_iter();
    let share = |user: usize| (user + 1) * count / users - user * count / users;
    (0..users)
        .map(|user| {
            let mut topics: Vec<Topic<'a>> = Vec::new();
            for document in documents.by_ref().take(share(user)) {
                match topics.last_mut() {
                    Some(topic) if topic.documents[0].label == document.label => {
                        topic.documents.push(document);
                    }
                    _ => topics.push(Topic { documents: vec![document], had: 0 }),
                }
            }
            User { topics, conversations: (length - user).div_ceil(users), over: 0 }
        })
        .collect()
}

impl User<'_> {
    pub(super) fn documents(&self) -> usize {
        self.topics.iter().map(|topic| topic.documents.len()).sum()
    }

    /// Documents that they had.
    pub(super) fn had(&self) -> usize {
        self.topics.iter().map(|topic| topic.had).sum()
    }

    /// The topic of the moment, from 0.
    pub(super) fn topic(&self) -> usize {
        // Both factors are below 2^32.
        let mut document = self.over as u64 * self.documents() as u64 / self.conversations as u64;
        for (at, topic) in self.topics.iter().enumerate() {
            let documents = topic.documents.len() as u64;
            if document < documents {
                return at;
            }
            document -= documents;
        }
        self.topics.len() - 1
    }

    /// The next conversation: about a document that they had or one that they did not, of which
    /// there must be one; of this topic, if it has any such.
    pub(super) fn converse(
        &mut self,
        had: bool,
        topic: Option<usize>,
        random: &mut Pcg64Mcg,
    ) -> (usize, Repeat) {
        self.over += 1;
        let on_topic = topic.filter(|&topic| self.topics[topic].choices(had) > 0);
        let among = on_topic.map_or(0..self.topics.len(), |topic| topic..topic + 1);
        let among = &mut self.topics[among];
        let mut chosen = draw::below(random, among.iter().map(|topic| topic.choices(had)).sum());
        // The draw falls into one of them.
        let mut at = 0;
        while chosen >= among[at].choices(had) {
            chosen -= among[at].choices(had);
            at += 1;
        }
        let topic = &mut among[at];
        if !had {
            topic.documents.swap(topic.had, topic.had + chosen);
            chosen = topic.had;
            topic.had += 1;
        }
        topic.documents[chosen].run(random)
    }
}
