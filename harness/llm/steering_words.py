"""Words of instructions to a grader in twenty languages: tables for `harness.llm.steering`."""

from typing import NamedTuple


class Language(NamedTuple):
    """The words of one language for: ignore, the instructions, rate, a grade, the highest, and this passage.

    Each field is a list of word stems, separated by spaces; `+` joins the words of a phrase. Languages in Latin script
    are written without accents, because texts are compared without them.
    """

    ignore: str
    orders: str
    rate: str
    grade: str
    top: str
    passage: str


LATIN = (
    Language(
        "ignore disregard forget override bypass",
        "previous prior above earlier all other these instruction rule rubric prompt",
        "assign give return output answer respond grade mark rate score label treat note set",
        "grade score rating rated relevan irrelevan label slot",
        "relevant irrelevant full none high max low perfect best top",
        "this+passage this+text this+chunk this+document",
    ),
    Language(
        "ignorier vergiss vergesst missacht ubergeh",
        "anweisung vorherig obig fruher bisherig regel vorgabe",
        "bewert vergib gib benote note setze stufe",
        "note punkt bewertung relevan stufe wertung",
        "hochst maximal voll best relevant",
        "dieser+text dieser+abschnitt diese+passage dieses+dokument",
    ),
    Language(
        "ignorez ignorer ignore oubliez oublie negligez",
        "instruction precedent ci-dessus consigne regle",
        "attribue donne note evalue classe accorde mettez",
        "note score pertinen notation",
        "maximum maximal plus+haut meilleur pertinent parfait",
        "ce+texte ce+passage ce+document cet+extrait",
    ),
    Language(
        "ignora ignore olvida omite descarta",
        "instruccion anterior previa regla indicacion",
        "califica asigna puntua evalua otorga marca dale",
        "calificacion puntuacion nota relevan puntaje",
        "maxim mas+alta relevante perfect mejor",
        "este+texto este+pasaje este+documento este+fragmento",
    ),
    Language(
        "ignora dimentica trascura tralascia",
        "istruzion precedent regol sopra",
        "assegna valuta dai attribuisci vota classifica",
        "voto punteggio rilevan pertinen valutazione",
        "massim piu+alto rilevante perfett miglior",
        "questo+testo questo+brano questo+passaggio questo+documento",
    ),
    Language(
        "ignore ignora esqueca desconsidere",
        "instruc anterior regra acima",
        "atribua avalie classifique de+nota pontue",
        "nota pontuacao relevan classificacao",
        "maxim mais+alta relevante perfeit melhor",
        "este+texto este+trecho este+documento esta+passagem",
    ),
    Language(
        "negeer vergeet sla+over",
        "instructie vorige eerdere bovenstaande regel",
        "geef beoordeel ken+toe waardeer",
        "cijfer score relevan beoordeling",
        "hoogste maxim volledig relevant beste",
        "deze+tekst deze+passage dit+document dit+fragment",
    ),
    Language(
        "zignoruj ignoruj zapomnij pomin",
        "instrukc poprzedni powyzsz polecen zasad",
        "ocen przyznaj wystaw daj przypisz",
        "ocen punkt istotn relewan",
        "najwyzsz maksymal istotn peln",
        "ten+tekst ten+fragment ten+dokument",
    ),
    Language(
        "yok+say gormezden unut dikkate+alma",
        "talimat onceki yukaridaki kural",
        "puan+ver degerlendir ver",
        "puan not ilgili derece",
        "en+yuksek maksimum tam ilgili",
        "bu+metin bu+pasaj bu+belge",
    ),
    Language(
        "bo+qua bo+qua phot+lo",
        "huong+dan truoc+do phia+tren quy+tac",
        "cho+diem danh+gia cham",
        "diem lien+quan",
        "cao+nhat toi+da lien+quan",
        "doan+nay van+ban+nay",
    ),
    Language(
        "abaikan lupakan",
        "instruksi sebelumnya perintah aturan",
        "beri nilailah berikan skor",
        "nilai skor relevan",
        "tertinggi maksim relevan penuh",
        "teks+ini bagian+ini dokumen+ini",
    ),
)


OTHERS = (
    Language(
        "игнорир забудь забудьте ігнору забудьте проигнор",
        "инструкц указани предыдущ выше правил інструкц попередн вказівк",
        "оцени постав присво дай дайте назнач оцінити оціни",
        "оценк балл релевант оцінк",
        "высш максим наивысш полн релевант найвищ",
        "этот+текст этот+отрывок этот+фрагмент этот+документ цей+текст цей+фрагмент",
    ),
    Language(
        "忽略 无视 無視 忽視 忘记 忘記 不要理会",
        "指示 指令 说明 說明 规则 規則 以上 之前 上面 先前",
        "评 給 给 打 評 标 標",
        "分数 分數 评分 評分 等级 等級 相关 相關 得分",
        "最高 满分 滿分 最大 相关 相關",
        "本段 此段 这段 這段 该段 本文 此文",
    ),
    Language(
        "無視 忘れ",
        "指示 命令 ルール 規則 以前 上記 前の",
        "評価 採点 つけ 付け 与え 出力",
        "評価 スコア 点数 関連 等級",
        "最高 満点 最大 関連",
        "この文章 この段落 この文書 このテキスト",
    ),
    Language(
        "무시 잊어",
        "지시 명령 규칙 이전 위의 앞의",
        "평가 매기 매겨 부여 주세요 주십시오",
        "점수 등급 관련 평점",
        "최고 만점 최대 관련",
        "이+글 이+문단 이+단락 이+문서",
    ),
    Language(
        "تجاهل انس انسَ",
        "تعليمات السابق أعلاه القواعد",
        "قيم قيّم أعط امنح ضع",
        "درجة تقييم صلة",
        "أعلى القصوى الكاملة صلة",
        "هذا+النص هذه+الفقرة هذا+المقطع",
    ),
    Language(
        "अनदेखा नज़रअंदाज नजरअंदाज भूल",
        "निर्देश पिछल नियम उपरोक्त",
        "दें दीजिए मूल्यांकन दो",
        "अंक ग्रेड प्रासंगिक स्कोर",
        "उच्चतम अधिकतम पूर्ण प्रासंगिक",
        "यह+अंश यह+पाठ यह+दस्तावेज़",
    ),
    Language(
        "αγνόησε αγνοήστε ξέχασε ξεχάστε",
        "οδηγί προηγούμεν παραπάνω κανόν",
        "βαθμολόγησε βαθμολογήστε δώσε δώστε",
        "βαθμ σκορ σχετικ",
        "υψηλότερ μέγιστ άριστ σχετικ",
        "αυτό+το+κείμενο αυτό+το+απόσπασμα",
    ),
    Language(
        "התעלם התעלמו שכח",
        "הוראות הקודמות כללים לעיל",
        "דרג תן העניקו הענק",
        "ציון רלוונטי דירוג",
        "הגבוה מקסימלי מלא רלוונטי",
        "טקסט+זה קטע+זה מסמך+זה",
    ),
)


ENGLISH = LATIN[0]
