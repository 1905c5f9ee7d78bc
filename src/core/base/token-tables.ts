/**
 * Tables of the token estimate: kinds of characters, known pairs, and the price of each step of the automaton.
 *
 * Prices are in hundredths of a token, fitted on prose, code, data and logs; pairs of letters that are rare in words cost
 * extra. Chinese, Japanese and Korean texts differ too much for an average: there a character is a token, unless it makes
 * a known pair with the one before. Prices lean high where a low estimate hurts: at double quotes (JSON), at digits, and
 * at letters after digits (logs, ids, hashes, base64).
 */

/** Kinds of UTF-16 code units. */
const kind = {
  lower: 0,
  upper: 1,
  accented: 2,
  digit: 3,
  space: 4,
  /** White space that does not join a mark after it: a tab, a no-break space. */
  blank: 5,
  newline: 6,
  mark: 7,
  apostrophe: 8,
  doubleQuote: 9,
  backslash: 10,
  /** Alphabets by how many of their words the vocabulary has. */
  cyrillic: 11,
  familiar: 12,
  unfamiliar: 13,
  /** Scripts whose letters are one or two tokens each. */
  unknown: 14,
  han: 15,
  kana: 16,
  hangul: 17,
  wideMark: 18,
  /** Symbols of about one, two and three tokens. */
  symbol: 19,
  rareSymbol: 20,
  rarestSymbol: 21,
  emoji: 22,
  /** The first half of any other pair of units, and the second half of all. */
  highHalf: 23,
  lowHalf: 24,
  /** Joins emoji, or selects their form. */
  joiner: 25,
} as const;
type Kind = (typeof kind)[keyof typeof kind];

/** Later ranges override earlier ones. */
const kindsByRange: readonly (readonly [from: number, to: number, of: Kind])[] = [
  [0x0000, 0xffff, kind.unknown],
  [0x0000, 0x007f, kind.mark],
  [0x0000, 0x001f, kind.symbol],
  [0x0000, 0x0000, kind.rareSymbol],
  [0x007f, 0x007f, kind.symbol],
  [0x0009, 0x000d, kind.blank],
  [0x000a, 0x000a, kind.newline],
  [0x000d, 0x000d, kind.newline],
  [0x0020, 0x0020, kind.space],
  [0x0022, 0x0022, kind.doubleQuote],
  [0x0027, 0x0027, kind.apostrophe],
  [0x0030, 0x0039, kind.digit],
  [0x0041, 0x005a, kind.upper],
  [0x005c, 0x005c, kind.backslash],
  [0x0061, 0x007a, kind.lower],
  [0x0080, 0x00bf, kind.symbol],
  [0x00a0, 0x00a0, kind.blank],
  [0x00c0, 0x024f, kind.accented],
  [0x0300, 0x036f, kind.accented],
  [0x0370, 0x03ff, kind.unfamiliar], // Greek
  [0x0400, 0x052f, kind.cyrillic],
  [0x0530, 0x05ff, kind.unfamiliar], // Armenian, Hebrew
  [0x0600, 0x06ff, kind.familiar], // Arabic
  [0x0900, 0x097f, kind.familiar], // Devanagari
  [0x0980, 0x0b7f, kind.unfamiliar], // Bengali to Odia
  [0x0b80, 0x0bff, kind.familiar], // Tamil
  [0x0c00, 0x0eff, kind.unfamiliar], // Telugu to Thai and Lao
  [0x10a0, 0x10ff, kind.familiar], // Georgian
  [0x1e00, 0x1eff, kind.accented],
  [0x1f00, 0x1fff, kind.unfamiliar],
  [0x2000, 0x206f, kind.symbol], // dashes, curly quotes, ellipsis
  [0x200d, 0x200d, kind.joiner],
  [0x2070, 0x27bf, kind.rareSymbol],
  [0x20ac, 0x20ac, kind.symbol], // €
  [0x2122, 0x2122, kind.symbol], // ™
  [0x2190, 0x2193, kind.symbol], // ← ↑ → ↓
  [0x2264, 0x2265, kind.symbol], // ≤ ≥
  [0x2500, 0x257f, kind.symbol], // boxes
  [0x27c0, 0x2fff, kind.rarestSymbol],
  [0x3000, 0x3000, kind.blank],
  [0x3001, 0x303f, kind.wideMark],
  [0x3040, 0x30ff, kind.kana],
  [0x3100, 0x312f, kind.rareSymbol],
  [0x3130, 0x318f, kind.hangul],
  [0x3190, 0x4dff, kind.rarestSymbol],
  [0x4e00, 0x9fff, kind.han],
  [0xa000, 0xabff, kind.rarestSymbol],
  [0xac00, 0xd7a3, kind.hangul],
  [0xd800, 0xdbff, kind.highHalf],
  [0xd83c, 0xd83e, kind.emoji],
  [0xdc00, 0xdfff, kind.lowHalf],
  [0xe000, 0xfdff, kind.rarestSymbol],
  [0xfe00, 0xfe0f, kind.joiner],
  [0xfe10, 0xfeff, kind.rareSymbol],
  [0xff00, 0xff60, kind.wideMark],
  [0xff61, 0xffff, kind.rareSymbol],
];

const kindOf = new Uint8Array(0x10000);
for (const [from, to, of] of kindsByRange) kindOf.fill(of, from, to + 1);

// Pairs of letters, one row per first letter: 1 is uncommon inside a token, 2 is rare. Random bytes are full of them.
const letterPairs: readonly string[] = [
  "....2....2....2.2.........", // a
  "..12.212..2.12.21.12.122.2", // b
  ".1.1.11..2..11.12.1..111.2", // c
  ".11..122.11111.11.....21.2", // d
  ".1.......2..........1....1", // e
  ".122..11.21.1..12.1..221.2", // f
  ".222.1...22.2..22....211..", // g
  ".122.22..2221..21....121.1", // h
  ".......2.1..........1.2.2.", // i
  ".112.2122.2222.122.2.22222", // j
  ".12..1.2.2.22.2122.22212.2", // k
  ".11....2.2..12..22.....2.2", // l
  "..22...2.211.2..12.1.122.1", // m
  ".2.....2........21....21.2", // n
  "................2........2", // o
  ".21..21..22.12..2....111.2", // p
  "22122222222.2222.221.22222", // q
  ".2.....1.2......1......1.2", // r
  ".112.....2..2...1....2.2.2", // s
  "...1.11..22..1..2....1...2", // t
  ".......2.22...1.2....12112", // u
  ".222.2.2.21212.222121.2221", // v
  ".221.21..21.2..22..221.222", // w
  ".1.112221222.22.222.222.12", // x
  "1.12.222.2211...2...12.1.1", // y
  ".221.221.222222222211221..", // z
];

// Two characters that are one token: a first character, then every second one. Most words of ordinary Chinese, and the
// endings, particles and word beginnings of Japanese and Korean.
const chinesePairs =
  "一下个些天定家年样次步点直种致般起 三个 上一下传午市海的述 下一午来载降面 不仅会可同好少得断是用能要起足过错 专业家题 世界纪 业务 东西 两个 严格重 个人月 中国心文的 丰富 为了何空 主体动席持要题 举行 " +
  "之一前后外间 也是 了一吗解 予定約 事业件务实情故项 于是 互动 交换易流 产业生 人口员士才数民物生 什么 今回天 介绍 仕事 他们的说 代码表 令人 以下前及后来 价值格 任何务 企业 优势化秀 会社议 传播统 但是 " +
  "位置 体现系育验 作为品用者 你好的 使命用 例如 供应 依据 促进 保存护持证险障 信息用 修改 值得 做到 停止 健康 儿童 允许 元素 充分 先生进 免费 入力口 內容 全国球部面 公共司布平開 共享同 关于注系联键闭 " +
  "兴趣 其中他它实 具体有 内容部 再次 农业村 决定 准备确 减少 几个十年 出了去来版现生 函数 分别析类 列表 创建新造 删除 判断 利用益 别人 到了底 制作度造 刷新 力量 办公法理 功能 加入工强载 动作力态物 " +
  "努力 動画 包含括装 北京 区别域 医生疗院 十分 升级 协议调 单位 卫生 危险 即可时 历史 压力 原则因 去了年 参与加数考 及时 双方 反馈 发展布挥现生行表送 取得消 受到 变化量 另一外 只是有能 可以是能 各种 " +
  "合作同理 同时步 名单字称 后台来的 否则 启动 告诉 员工 周期 和平 咨询 品牌 哈哈哈 响应 哪些 唯一 商业 問題 喜欢 営業 回复来答 因为此素 团队 困难 固定 国内外家际 图片 土地 在线 地区图址方点 坚持 " +
  "垃圾 城市 培养训 基本础金 場合 填写 增加强长 声明音 处理 备注 変更 复制杂 外国 多个少年数 大会学家师的量 天气空 失败 女子生 好了多的 如下何果此 妈妈 姓名 媒体 字体段符 存在 季度 学习校生院 孩子 " +
  "學生 安全排装 完全善成整 官方 定义位 实体例力施时现行践际验 审核 客户 宣传布 家庭 容易量 密码 对于应象 寻找 导致 対応象 専門 将在 小学时 尤其 就业是 居民 展开示 属于性 工业作具程资 左右 已有经 市场 " +
  "布局 希望 帮助 平台均 年代底的轻龄 幸福 广告 应用该 建立筑议设 开发启始展心放 异常 引用 强化调 当前地天然 形式成 影响 很多好 得到 循环 心理 必要须 快乐捷速 怎么 思想 性能质 总体 恢复 您好的 情况報 " +
  "想到着 意义思见识 感染觉谢 成为功员本果熟立绩长 我们們国是的要 或者 战略 所以在属有谓 手机续 才能 打印开造 执行 扩大 扫描 找到 承担 技术 投入资 报告道 拥有 持续 指出南定导数标 按照钮 挑战 授权 " +
  "排列名序 探索 接受口 控制 推出动广荐进 措施 描述 提交供出前升示醒高 插件 搜索 摄影 播放 操作 支付持 收入到藏费 改变善革 攻击 放心 政府治策 故事 效果率 教学师程育 数字学据组量 整个体数理 " +
  "文件化字学明本章 料理 新增的闻 方便向式案法面 旅游行 无法限需 日志期本 时代候期间 明显确 星期 昨天 是一否 显示 時間 晚上 普通 智慧能 更加多新 最低佳后多大好後新终近长高 月份 有人关效 朋友 服务務 " +
  "期待间限 未来知 本人 机会关制器构 权益限 材料 条件 来了到的看自说 東京 查看询 标准签题 核心 根据 格式 案件例 梦想 检查测 検索 模块型式拟板 次数 欢迎 正在常式文确 此外次 步骤 每天日 比例如赛較较 毕业 " +
  "民族 水平 沒有 没有 治理疗 法国律院 注册意 活动 流程 测试 浏览 消息费 深入 添加 渠道 游戏 源码 满意足 漂亮 点击 热门 無料 然后而 照片 爱情 爸爸 版本 特别殊点 状态態 环境 现代在场实 現在 " +
  "理念由解论 甚至 生产命态成活 用于户 由于 申请 电子影脑视话 男子 留下 疫情 疾病 病毒 登录记録 的一不人大是话 监听督管 目前录标的 直到接 相信关比 看到看 真实正的 知识道 研发究 确保定认 確認 社会区 禁止 " +
  "科学技 秘密 积分极 移动 程序度 種類 稳定 空气间 突出然破 窗口 立即 竞争 章节 符合 第一三二 等待等级 答案 策略 简单 算法 管理 类似别型 精神 系列统 紹介 経験 結果 編集 线程 组件合成织 终于 " +
  "经典历济理营过验 绑定 结合束构果 给予 统一计 继续 维修护 综合 缓存 编号码辑 网站络页 美国 群众 老人师 考虑试 而言 聊天 职业 联合系 股份 背景 能力够源 自主动己然由身 至少 舒服 艺术 节点目 英文语 " +
  "范围 获取得 菜单 营销 落实 虽然 融合 行业为动 表现示达 要求 覆盖 观察点 规划则定格模范 视频 觉得 角色 解决析释除 記事 設定 評価 説明 计划算 订单 认为可真证识 讨论 让我 训练 记录 讲话 许可 论文 " +
  "设备施置计 访问 证券明 评价论 详细 语言 说明道 请求 读取 课程 调整查用 谢谢 資料 负责 贡献 责任 账号户 质量 购买物 贸易 费用 资产料本源金 起来 超级过 趋势 距离 路径 身份体 车辆 转换 软件 辅助 " +
  "输入出 达到 过去滤程 运动营行输 返回 还是有 这一个么些是样种里 进入行 连接续 退休出 选择 透明 通信常知过 速度 造成 道路 避免 那个么些里 邮件 部分署门 都会是有 配置 酒店 采取用 释放 里的面 " +
  "重复大新点要 金融额 针对 银行 链接 销售 错误 长度期 開始 问题 阅读 阶段 附件近 降低 限制 除了 随后机着 隐藏 集中合团 電影話 需求要 非常 面对积 音乐 页面 项目 预测算 领域导 颜色 风险 飞机 食品 " +
  "首先次 马上 验证 高度级速 默认";
const japanesePairs =
  "あとりる いいうたつてやる えてばる かならわ がお きを くだら こうことのれろん ござ さいてられん しいかくたてまゃ じめゃ すする ぜひ そうこのれ たいだめり だけ ちなはゃら ったてと ても できすはも " +
  "とうかなのはも どう ないおがくしたどのらるん につなはもよ のおでみ はい への ほどん まあすずせただでとり みに もうしちの ょう ようり れてばる ろん わせれ をご んな アイルン イクスズトドブヤルン ウェォトン " +
  "オン カルー キャー クセトラリロ コミン ザー シャュョ ジェャュョ スクタテトペポマメ セルン タイグンー ダー チェャ ックグズチトドフプ ティゴルン ディル ドラル ナルー ニメュー ネル バー パン ビー ピー " +
  "ファィェォト ブラル プリレロ ベル マンー メリ ャン ュー ユー ライクスムンー リアエンー ルト レスビンー ログンー ンクグサスズタダトドプ ヴィ ーカクジスズタダチツテデトドナバパビフブプポマムルワンーー";
const koreanPairs =
  "ㅋㅋㅋ ㅎㅎㅎ ㅠㅠ 가격기까는능입장져족지진치 각각 감독사소을 값을 강조화 같다은이 개발선월의인최 객체 거나래리의 건강 검사색 것도은을이 게시임 겠다 결과국정 경기우쟁제찰험 계를산속약획 고객려민 " +
  "공간개격급동부식연유지 과정 관계광련리심한 광고 교수육 구매성조축현 국가내민제 규모 그것냥녀는래램러런렇룹림의 금융을 기가간관는능다대도로록를반본사술억업에의자존준타 까요지 나는라오온요타 날짜 났다 내가려부용 " +
  "너무지 넘어 네요 년도에 노동력 높은 누구 뉴스 느낌 는다데 니까다스 님의 다가고는른면시양운음 단계 담당 당시신 대로를비상신응표학한해 댓글 더욱 도가로록를시움의 돌아 동안일 됐다 되고는어었지 된다 " +
  "드는를시 들과도어은을의이 등록에을의이장 디어오 따라른 때문 떨어 또는한 라고는도마우이인 랜드 랫폼 러스운한 렇게 레스이 려고 력을이 렸다 로그나드벌운 롭게 르게고는면 리가고는를뷰스아에즈지 링크 " +
  "마다련음트 만나든들족큼 많은이 말씀을 매우 머니 먼저 메뉴시일 면서 명을의이 모델두든르습집 목록적표 무료엇 문의자제화 물론을이 뮤니 므로 미국래 민국주 바라로이일 반복환 받고아은을 발견생전표 " +
  "방문법송식향 배송열우 버튼 번째호 벤트 변경수화 보고기내는다면여험호 본문 부담모분산족탁터 북한 분석야위 비교롯스용 사가건고는람랑례를실업용의이진항회 삭제 산업 살아 삼성 상담당대세승을의이태품황 생각산성활 " +
  "서는로를버울 선수언을정택 설명정치 성공과을이장 세계요 센터 소개년드비재 수가도를정준행 순간 쉽게 스럽로를크타터템토트 승인 시간는대면민설아에오작장즌키행험 식을 신고규문청 실시제패행 싶은 쓰기 " +
  "아니닌래름무서요이주직 안내을전정 않고는아았은을 알고려아 았다 어나난느디떤려렵린서요진 억원 언제 얼굴마 업무체 없는다어음이 었다던 에게는도서 여기러부성자행 역사시할 연결구락 열린 였다 영상어역향화 " +
  "예방상약정 오기는늘래류른전후 올라해 옵션 완료 왔다 요구소일청 우리 운데동영 움을직 워크 원을의이 웨어 위를원치한해험 유명지형 으로며면 은행 음식악을 의견료를미원해 " +
  "이가것고나날는다동드라런루를름며면미버번블상션스야어에용유전제지크터트하해후 인가간기다데은을의이정증지터트해 일반보본부을이정 입력 있게고기는다어었으을음 자가기는동로료를리세신연유의인체 작성업은품 장소애은을의이 " +
  "재미 저는장 적극용인 전국달략망문에을자체화히 점을 접근 정도말보부상신을의책치확 제가거공로를목외작조주출품한 젝트 졌다 조건금사직회 존재 종료류 좋아은 주는문민변소시요의장 준다비 중국심앙요 증가 " +
  "지가고금급나난는도를막만방속역원정털 직원접 진행 질문 집중 차량 참가고석여 찾아 책임 처럼리음 체크 초기 최고근대소신초 추가진천 출력시 충분 치는료를 친구 카드 케팅 코드 크게 클래릭 타입 텐츠 통령한해 " +
  "투자 트를 특별정징히 파일트 판단매 평가균 포츠함 표시현 퓨터 프로트 피부해 필요 하게고기나는다려루며면시여지 학교생 한국다번 할인 함께수 항상 해결당서야외 했고다던 행동복사 현대실재 형태 호출텔 화를면 " +
  "확대보인 환경 활동성용 회를사원의 효과 후기보";

/** Read when a text first needs them, as most programs estimate none. */
let knownPairs: Uint32Array | null = null;

function readPairs(): Uint32Array {
  const known = new Uint32Array(2048);
  for (const group of `${chinesePairs} ${japanesePairs} ${koreanPairs}`.split(" ")) {
    for (let at = 1; at < group.length; at++) {
      const bit = bitOfPair(group.charCodeAt(0), group.charCodeAt(at));
      known[bit >> 5] = (known[bit >> 5] ?? 0) | (1 << (bit & 31));
    }
  }
  return known;
}

/** A hash: one unknown pair in thirty is taken for a known one, which the prices allow for. */
function bitOfPair(first: number, second: number): number {
  return (Math.imul(first, 0x9e3779b1) ^ Math.imul(second, 0x85ebca6b)) >>> 16;
}

/** Whether a unit is tied to the one before it: by a known pair in scripts that have them, otherwise by repetition. */
function isTied(before: number, unit: number): boolean {
  if (unit < 0x3040 || unit > 0xd7a3) return unit === before;
  const bit = bitOfPair(before, unit);
  knownPairs ??= readPairs();
  return (((knownPairs[bit >> 5] ?? 0) >>> (bit & 31)) & 1) === 1;
}

// The states: what comes before the next unit. A pending piece is paid for by what follows it, or at the end.
let states = 0;
const state = (): number => states++;

const open = state(); // nothing that the next unit could join
const newline = state();
const space = state(); // pending; it goes with the word or the marks after it
const blank = state(); // pending; it goes with the word after it
const spaces = state(); // the same two after further blanks
const blanks = state();
const mark = state(); // pending; it goes with the word after it
const twoMarks = state();
const threeMarks = state();
const manyMarks = state();
const marksNewline = state(); // a newline goes with the marks before it
const escape = state(); // a pending backslash
const marksEscape = state(); // marks that end in a backslash
const escaped = state(); // a letter after a backslash: a word may still begin, as in "\nword"
const oneDigit = state();
const twoDigits = state();
const threeDigits = state();
const capital = state();
const capitals = state();
const letters = Array.from({ length: 6 }, state); // of a word after a mark, a digit or nothing
const spacedCapital = state();
const spacedCapitals = state();
const spacedLetters = Array.from({ length: 13 }, state); // of a word after a space, or of a later hump in camelCase
const longWord = state();
const apostrophe = state(); // pending after a word, as in "don't"
const foreignLetter = state(); // of another alphabet
const foreignLetters = state();
const foreignWord = state();
const spacedForeignLetter = state();
const spacedForeignLetters = state();
const spacedForeignWord = state();
const character = state(); // Han or kana
const characterPair = state();
const syllable = state(); // Hangul
const syllablePair = state();

const [letter = open, secondLetter = open, thirdLetter = open] = letters;
const [spacedLetter = open, secondSpacedLetter = open, thirdSpacedLetter = open] = spacedLetters;

/** For every state a row, with one column per kind, and again for the same kinds tied to the unit before. */
const tied = 32;
const rowSize = 2 * tied;
/** A step is the row it leads to, with its price in the low bits. */
const priceBits = 10;
const priceMask = (1 << priceBits) - 1;
const steps = new Int32Array(states * rowSize);
const pending = new Uint8Array(states);

function on(from: readonly number[], kinds: readonly Kind[], to: number, price: number): void {
  for (const row of from) for (const column of kinds) setStep(row, column, to, price);
  onTied(from, kinds, to, price);
}

function onTied(from: readonly number[], kinds: readonly Kind[], to: number, price: number): void {
  for (const row of from) for (const column of kinds) setStep(row, column | tied, to, price);
}

function setStep(row: number, column: number, to: number, price: number): void {
  steps[row * rowSize + column] = ((to * rowSize) << priceBits) | price;
}

const { lower, upper, accented, digit, han, kana, hangul } = kind;
const anyMark: readonly Kind[] = [kind.mark, kind.apostrophe, kind.doubleQuote, kind.backslash];
const alphabets: readonly Kind[] = [kind.cyrillic, kind.familiar, kind.unfamiliar];

// Defaults: a new piece, whatever came before. First after nothing, then the same with what is due in every other state.
on([open], [lower], letter, 97);
on([open], [upper], capital, 101);
on([open], [accented], letter, 137);
on([open], [digit], oneDigit, 126);
on([open], [kind.space], space, 0);
on([open], [kind.blank], blank, 0);
on([open], [kind.newline], newline, 100);
on([open], [kind.mark, kind.apostrophe], mark, 0);
on([open], [kind.doubleQuote], mark, 20);
on([open], [kind.backslash], escape, 0);
on([open], alphabets, foreignLetter, 130);
on([open], [kind.unknown], open, 140);
on([open], [han], character, 102);
on([open], [kana], character, 97);
on([open], [hangul], syllable, 100);
on([open], [kind.wideMark], open, 75);
onTied([open], [kind.wideMark], open, 40);
on([open], [kind.symbol], open, 100);
onTied([open], [kind.symbol], open, 14);
on([open], [kind.rareSymbol], open, 190);
onTied([open], [kind.rareSymbol], open, 100);
on([open], [kind.rarestSymbol, kind.highHalf], open, 290);
on([open], [kind.emoji], open, 170);
on([open], [kind.lowHalf], open, 30);
on([open], [kind.joiner], open, 90);
for (const before of Array(states).keys()) {
  const due = [space, blank, spaces, blanks, mark, escape, apostrophe].includes(before) ? 100 : 0;
  pending[before] = before === spaces || before === blanks ? 0 : due;
  for (let column = 0; column < rowSize; column++) steps[before * rowSize + column] = (steps[column] ?? 0) + due;
}

// White space: the blanks up to a line's end are one piece, else all but the last of them are.
on([newline], [kind.newline], newline, 7);
on([space, blank], [kind.newline], newline, 100);
on([spaces, blanks], [kind.newline], newline, 0);
on([space, blank], [kind.space], spaces, 100);
on([space, blank], [kind.blank], blanks, 100);
on([spaces, blanks], [kind.space], spaces, 1);
on([spaces, blanks], [kind.blank], blanks, 7);

// Pieces that include the blank before them.
on([space, spaces], [lower], spacedLetter, 100);
on([space, spaces], [upper], spacedCapital, 104);
on([space, spaces], [accented], spacedLetter, 120);
on([space, spaces], anyMark, twoMarks, 100);
on([space, spaces], [kind.doubleQuote], twoMarks, 120);
on([space, spaces], alphabets, spacedForeignLetter, 100);
on([space, spaces], [han, kana], character, 130);
on([space, spaces], [hangul], syllable, 100);
on([space, spaces], [kind.wideMark, kind.symbol], open, 100);
on([space, spaces], [kind.rareSymbol], open, 190);
on([space, spaces], [kind.emoji], open, 170);
on([blank, blanks], [lower], letter, 127);
on([blank, blanks], [upper], capital, 131);
on([blank, blanks], [accented], letter, 150);
on([blank, blanks], alphabets, foreignLetter, 150);

// Marks. A run of the same mark is one token however long; others grow dear from the fourth on.
on([mark], [lower], letter, 119);
on([mark], [upper], capital, 123);
on([mark], [accented], letter, 170);
on([mark], alphabets, foreignLetter, 170);
for (const quote of [false, true]) {
  const marks = quote ? [kind.doubleQuote] : anyMark;
  const lean = quote ? 20 : 0;
  on([mark, apostrophe, escape], marks, twoMarks, lean + 101);
  on([twoMarks], marks, threeMarks, lean + 15);
  onTied([twoMarks], marks, threeMarks, lean + 5);
  on([threeMarks, manyMarks, marksEscape], marks, manyMarks, lean + 38);
  onTied([threeMarks, manyMarks, marksEscape], marks, manyMarks, quote ? 26 : 3);
}
on([mark, apostrophe, escape], [kind.backslash], marksEscape, 101);
on([twoMarks], [kind.backslash], marksEscape, 15);
on([threeMarks, manyMarks, marksEscape], [kind.backslash], marksEscape, 38);
onTied([twoMarks, threeMarks, manyMarks, marksEscape], [kind.backslash], marksEscape, 26);
on([mark, apostrophe, escape], [kind.newline], marksNewline, 100);
on([twoMarks, threeMarks, manyMarks, marksEscape], [kind.newline], marksNewline, 0);
on([marksNewline], [kind.newline], marksNewline, 7);
on([escape, marksEscape], [lower], escaped, 100);
on([escaped], [lower], letter, 100);

// Digits.
on([oneDigit], [digit], twoDigits, 0);
on([twoDigits], [digit], threeDigits, 0);
on([oneDigit, twoDigits, threeDigits], [lower], letter, 130);
on([oneDigit, twoDigits, threeDigits], [upper], capital, 132);

// Words: a few letters are free, further ones are not, and sooner without a space before the word.
for (const [at, from] of letters.entries()) {
  const price = at < 2 ? 0 : at < 5 ? 5 : 14;
  on([from], [lower], letters[at + 1] ?? longWord, price);
  on([from], [accented], letters[at + 1] ?? longWord, price + 55);
}
for (const [at, from] of spacedLetters.entries()) {
  const price = at < 5 ? 0 : at < 12 ? 4 : 14;
  on([from], [lower], spacedLetters[at + 1] ?? longWord, price);
  on([from], [accented], spacedLetters[at + 1] ?? longWord, price + 50);
}
on([longWord], [lower], longWord, 14);
onTied([longWord], [lower], longWord, 25);
on([longWord], [accented], longWord, 55);
on([...letters, ...spacedLetters, longWord, escaped], [upper], spacedCapital, 97);
on([capital], [lower], secondLetter, 0);
on([capital], [accented], secondLetter, 40);
on([spacedCapital], [lower], secondSpacedLetter, 0);
on([spacedCapital], [accented], secondSpacedLetter, 40);
on([capital, capitals], [upper], capitals, 9);
on([spacedCapital, spacedCapitals], [upper], spacedCapitals, 8);
onTied([capital, capitals], [upper], capitals, 26);
onTied([spacedCapital, spacedCapitals], [upper], spacedCapitals, 26);
on([capitals], [lower, accented], thirdLetter, 70);
on([spacedCapitals], [lower, accented], thirdSpacedLetter, 70);
const endsOfWords = [capital, capitals, ...letters, spacedCapital, spacedCapitals, ...spacedLetters, longWord];
on(endsOfWords, [kind.apostrophe], apostrophe, 0);
on([apostrophe], [lower], letter, 35);

// Other alphabets and scripts.
for (const [alphabet, third, further] of [
  [kind.cyrillic, 5, 19],
  [kind.familiar, 8, 33],
  [kind.unfamiliar, 27, 44],
] as const) {
  on([foreignLetter], [alphabet], foreignLetters, third + 10);
  on([foreignLetters, foreignWord], [alphabet], foreignWord, further);
  on([spacedForeignLetter], [alphabet], spacedForeignLetters, 2);
  on([spacedForeignLetters], [alphabet], spacedForeignWord, third);
  on([spacedForeignWord], [alphabet], spacedForeignWord, further);
}
onTied([character], [han, kana], characterPair, 2);
onTied([characterPair], [kana], characterPair, 50);
onTied([characterPair], [han], character, 85);
onTied([syllable], [hangul], syllablePair, 2);
onTied([syllablePair], [hangul], syllablePair, 55);

/** Column and price of every pair of ASCII characters in one lookup, which accounts for most of the speed. */
const asciiPairs = new Uint16Array(128 * 128);
const asciiColumns = Uint16Array.from(kindOf.subarray(0, 128), (column) => column << 8);
for (let before = 0; before < 128; before++) {
  asciiPairs.set(asciiColumns, before << 7);
  asciiPairs[(before << 7) | before] = (asciiColumns[before] ?? 0) | (tied << 8);
}
for (const [first, rarities] of letterPairs.entries()) {
  for (const [second, rarity] of [...rarities].entries()) {
    if (rarity === ".") continue;
    const price = rarity === "1" ? 24 : 66;
    for (const a of ["A", "a"]) {
      for (const b of ["A", "a"]) {
        const pair = ((a.charCodeAt(0) + first) << 7) | (b.charCodeAt(0) + second);
        asciiPairs[pair] = (asciiPairs[pair] ?? 0) | price;
      }
    }
  }
}

export const tables = { asciiPairs, kindOf, steps, pending, isTied, tied, rowSize, priceBits, priceMask };
